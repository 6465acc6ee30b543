-- Grants for one account: concurrency, requests and tokens in a sliding minute, a learned rate, pause and circuit, on
-- Redis' time.
-- KEYS: 1 state (hash), 2 processes (zset: expiry in ms), 3 held (hash: process -> calls out), 4 window (hash)
-- ARGV: a JSON object:
--   process, lease (ms), held (calls that the process has out), ended (calls of the present epoch that ended),
--   most (concurrency), per_minute, tokens_per_minute (0: no limit), fits (calls at once that the time limit of each
--   allows, 0: unknown), first (calls at once before the account has answered any), keep_ms (of the keys)
--   epoch (the process knows), good (answers of this epoch), refused (1: a call of this epoch was refused, 429),
--   hint (requests a minute that the refusal's headers allow, 0: unknown), backoff (ms: first wait after a refusal that
--   names none), hold (ms until the account has room again, by an answer's headers), left (requests that an answer's
--   headers leave, -1: unknown), late (ms: a call of this age found no answer in time, 0: none), errors (in a row),
--   succeeded, pause (ms), circuit (ms), said (the last error), back ([bucket, tokens] each), asked (tokens of each
--   call that is asked for)
-- Returns {granted, wait in ms, bucket, times the circuit opened, ms until it is tried, ms of the pause, epoch, calls
--   out, refusals in a row, 1 where a call tries the circuit, errors in a row, what was said}
-- The minute has two seconds more: a provider counts requests when they arrive, and a busy process sends some of them late.
-- Requests are paced besides: one after another at the minute's share of each. What may leave together is what falls into
-- AHEAD ms, so that an account with many requests a minute is not held up by the rounds of asking.
local BUCKET, MINUTE, ERRORS, AHEAD = 250, 62000, 20, 250
-- Calls at once that are as good as no bound, requests a second likewise, ms after which a refusal is forgotten, and
-- answers after which an account that refused none is asked as fast as calls come.
local MOST, FASTEST, REMEMBERED, STEADY = 512, 500, 120000, 300
-- The longest wait of an open circuit, in ms: an account that answers again is soon noticed, and failed calls cost nothing.
local LONGEST = 8000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local bucket = math.floor(now / BUCKET)
local args = cjson.decode(ARGV[1])
local process, lease = args.process, args.lease
local most, per_minute, tokens_per_minute = args.most, args.per_minute, args.tokens_per_minute
local state, processes, held, window = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local function number(field) return tonumber(redis.call('HGET', state, field) or '0') end

-- Redis' clock was set back: every time that is kept moves with it, else the window would stay full, and slots of dead
-- processes held, until the clock is again where it was.
local seen = number('seen')
if now < seen - 1000 then
  local back = seen - now
  for _, field in ipairs({'paused_until', 'open_until', 'next_at', 'anchor', 'cut_at', 'begun_at', 'failing_since'}) do
    if number(field) > 0 then redis.call('HSET', state, field, number(field) - back) end
  end
  for _, name in ipairs(redis.call('ZRANGE', processes, 0, -1)) do redis.call('ZINCRBY', processes, -back, name) end
  local moved = redis.call('HGETALL', window)
  redis.call('DEL', window)
  for i = 1, #moved, 2 do
    local at = tonumber(string.sub(moved[i], 2)) - math.floor(back / BUCKET)
    redis.call('HINCRBYFLOAT', window, string.sub(moved[i], 1, 1) .. at, moved[i + 1])
  end
end
redis.call('HSET', state, 'seen', now)

-- Slots of processes that have not been heard of come back.
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', processes, '-inf', now)) do
  redis.call('ZREM', processes, dead)
  redis.call('HDEL', held, dead)
end
redis.call('ZADD', processes, now + lease, process)
-- The process says itself what it has out: should Redis forget everything, it is known again at once.
local mine = args.held
redis.call('HSET', held, process, mine)
local out = 0
for _, count in ipairs(redis.call('HVALS', held)) do out = out + tonumber(count) end

-- Circuit: 20 errors in a row open it; then one call at a time tries, and every failure doubles the wait, up to LONGEST.
local opened, open_until = number('opened'), number('open_until')
local errors = number('errors')
if args.succeeded == 1 then
  errors, opened, open_until = 0, 0, 0
  redis.call('HDEL', state, 'failing_since')
end
local failed = args.errors
if failed > 0 then
  errors = errors + failed
  redis.call('HSETNX', state, 'failing_since', now)
  if errors >= ERRORS and (open_until <= now or number('trying') == 1) then
    open_until = now + math.min(LONGEST, args.circuit * 2 ^ opened)
    opened = opened + 1
    redis.call('HSET', state, 'trying', 0)
  end
end
redis.call('HSET', state, 'errors', errors, 'opened', opened, 'open_until', open_until)
local open_for = math.max(0, open_until - now)

-- Slow start: few calls at once, one more for each answer, as long as all of them are in use. A call that found no answer
-- in time halves them: the server works off one after another.
local cwnd, epoch, fresh = number('cwnd'), number('epoch'), number('fresh')
local current = args.epoch == epoch
if cwnd == 0 then cwnd = args.first end
if current then fresh = math.max(0, fresh - args.ended) end
local good = current and args.good or 0
if good > 0 and math.min(fresh, out) + good >= cwnd / 2 then
  -- At the beginning each answer lets three more leave; after a refusal, or beyond 16, one.
  local step = (epoch == 0 and cwnd < 16 and number('cut_at') == 0) and 3 or 1
  cwnd = math.min(cwnd + step * good, MOST)
end
if args.late > 0 and now - args.late >= number('cut_at') then
  cwnd = math.max(1, math.floor(math.min(cwnd, math.max(1, out)) / 2))
  redis.call('HSET', state, 'cut_at', now)
end

-- The rate, by additive increase and multiplicative decrease. What was let through between two refusals is what the
-- account gives in that time, whatever burst it takes besides. Refusals come at once, answers may take a minute.
local rate, anchor, taken_in = number('rate'), number('anchor'), number('taken_in')
local since, backed = number('since') + good, number('backed')
if good > 0 then backed = 0 end
local pause, paused_until = args.pause, number('paused_until')
if current and args.refused == 1 then
  local span = now - anchor
  taken_in = math.max(0, taken_in - 1)
  if taken_in > 0 then backed = 0 end
  if anchor > 0 and taken_in > 0 and span > 0 and span < REMEMBERED then
    -- Of the wait after the last refusal a quarter does not count: a bucket may have been full before it was over.
    local busy = math.max(1, span - math.min(number('waited'), span * 0.9))
    local seen_rate = (0.75 * taken_in / span + 0.25 * taken_in / busy) * 0.95
    rate = rate > 0 and math.max(rate / 2, math.min(rate * 0.95, seen_rate)) or seen_rate
  elseif rate > 0 and since > 0 then
    rate = rate * 0.7
  elseif rate == 0 and args.hint > 0 then
    rate = args.hint / 60000
  end
  local lasts = anchor > 0 and taken_in == 0 and span < REMEMBERED
  if not lasts then anchor, taken_in = now, 0 end
  local backoff = math.min(60000, args.backoff * 2 ^ backed)
  if pause <= 0 or backed >= 2 then pause = math.max(pause, backoff) end
  local waited = pause
  if lasts then waited = waited + number('waited') end
  epoch, fresh, since, backed, cwnd = epoch + 1, 0, 0, backed + 1, 1
  redis.call('HSET', state, 'begun_at', now + pause, 'waited', waited, 'said', args.said)
elseif args.said ~= '' then
  redis.call('HSET', state, 'said', args.said)
end
if pause > 0 then paused_until = math.max(paused_until, now + pause) end
-- While calls wait for it the rate goes up with every answer, slowly at first: the account may have more by now.
if good > 0 and rate > 0 and #args.asked > 0 then
  local step = math.min(0.05, 0.003 * (1 + (since / 30) ^ 2))
  if args.left > 8 then step = 0.1 end
  rate = rate * (1 + step) ^ math.min(good, 20)
  if rate * 1000 > FASTEST then rate, cwnd = 0, MOST end
end
redis.call('HSET', state, 'paused_until', paused_until, 'rate', string.format('%.9f', rate), 'anchor', anchor,
  'since', since, 'backed', backed, 'epoch', epoch)

-- The window: buckets older than a minute fall out whole, so no minute ever holds more than the limit.
local requests, tokens, oldest = 0, 0, nil
local metered = per_minute > 0 or tokens_per_minute > 0
for _, pair in ipairs(args.back) do
  local field = 't' .. string.format('%d', pair[1])
  if metered and redis.call('HEXISTS', window, field) == 1 then
    redis.call('HINCRBYFLOAT', window, field, -pair[2])
  end
end
if metered then
  local fields = redis.call('HGETALL', window)
  for i = 1, #fields, 2 do
    local at = tonumber(string.sub(fields[i], 2))
    if (bucket - at) * BUCKET > MINUTE then
      redis.call('HDEL', window, fields[i])
    else
      if string.sub(fields[i], 1, 1) == 'r' then requests = requests + fields[i + 1] else tokens = tokens + fields[i + 1] end
      if fields[i + 1] ~= '0' and (oldest == nil or at < oldest) then oldest = at end
    end
  end
end

local asked = #args.asked
local granted, wait = 0, 0
-- The learned rate never goes beyond the one that the file names.
local interval, ahead = per_minute > 0 and MINUTE / per_minute or 0, AHEAD
if rate > 0 and 1 / rate > interval then interval, ahead = 1 / rate, AHEAD / 5 end
local next_at = math.max(now, number('next_at'), number('begun_at'))
if args.hold > 0 then next_at = math.max(next_at, now + args.hold) end
if asked > 0 then
  local blocked = math.max(paused_until, open_until)
  if blocked > now then
    wait = blocked - now
  else
    local room = asked
    if errors >= ERRORS then room = 1 end
    local function bound(free)
      if room > free then room, wait = math.max(0, free), 50 end
    end
    if most > 0 then bound(most - out) end
    if args.fits > 0 then bound(args.fits - out) end
    if epoch == 0 then
      bound(cwnd - out)
    elseif rate == 0 then
      -- After a pause one call leaves, then more; twice as many each second, too: a refusal would have come by then.
      local seconds = math.min(9, math.max(0, math.floor((now - number('begun_at')) / 1000)))
      bound(cwnd * 2 ^ seconds - math.min(fresh, out))
    else
      if number('cut_at') > number('begun_at') then bound(cwnd - out) end
      if backed > 0 and now < number('begun_at') + 1000 then bound(1 - math.min(fresh, out)) end
    end
    -- At first not all in one moment: a refusal shall find some that have not left.
    if epoch == 0 and since < STEADY then
      local few = math.max(4, math.ceil(cwnd / 16))
      if args.left >= 0 then few = math.min(few, math.max(1, args.left - out)) end
      if room > few then room, wait = few, 5 end
    end
    local taken = 0
    while granted < room do
      if next_at > now + math.max(0, ahead - interval) then
        wait = math.max(20, next_at - now - math.max(0, ahead - interval))
        break
      end
      local cost = args.asked[granted + 1]
      if tokens_per_minute > 0 then cost = math.min(cost, tokens_per_minute) end
      if (per_minute > 0 and requests + granted + 1 > per_minute)
          or (tokens_per_minute > 0 and tokens + taken + cost > tokens_per_minute) then
        wait = math.max(50, ((oldest or bucket) + 1) * BUCKET + MINUTE - now)
        break
      end
      granted, taken, next_at = granted + 1, taken + cost, next_at + interval
    end
    if granted > 0 then
      mine, out, fresh = mine + granted, out + granted, fresh + granted
      if metered then
        redis.call('HINCRBY', window, 'r' .. bucket, granted)
        redis.call('HINCRBYFLOAT', window, 't' .. bucket, taken)
      end
      if errors >= ERRORS then
        -- One call tries; the others wait until it has ended, or at most this long.
        redis.call('HSET', state, 'trying', 1, 'open_until', now + 60000)
      end
    end
  end
end
if interval > 0 or args.hold > 0 then redis.call('HSET', state, 'next_at', next_at) end
redis.call('HSET', state, 'cwnd', cwnd, 'fresh', fresh, 'taken_in', taken_in + granted)
redis.call('HSET', held, process, mine)
local keep = args.keep_ms + math.max(0, paused_until - now)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, math.ceil(keep)) end
return {granted, math.ceil(wait), bucket, opened, math.ceil(open_for), math.ceil(math.max(0, paused_until - now)), epoch,
  out, backed, number('trying'), errors, redis.call('HGET', state, 'said') or ''}
