// Tells the server the browser's time zone, in which the next page shows its times (annotation/access/languages.py).
{
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; secure" : "";
  if (zone) document.cookie = `zone=${zone}; path=${document.currentScript.dataset.path}; max-age=31536000; samesite=lax${secure}`;
}
