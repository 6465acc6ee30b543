-- Grants for one account: requests and tokens in a sliding minute, concurrency, pause and circuit, on Redis' time.
-- KEYS: 1 state (hash), 2 processes (zset: expiry in ms), 3 held (hash: process -> calls out), 4 window (hash)
-- ARGV: 1 process, 2 lease ms, 3 concurrency, 4 requests a minute, 5 tokens a minute (0: no limit),
--   6 calls ended, 7 whether one succeeded, 8 errors in a row since, 9 pause ms, 10 circuit ms,
--   11 number of give-backs, then (bucket, tokens) each, then the tokens of each call that is asked for
-- Returns {granted, wait in ms, bucket, times the circuit opened, process was unknown, ms until it is tried again}
-- The minute has two seconds more: a provider counts requests when they arrive, and a busy process sends some of them late.
-- Requests are paced besides: one after another at the minute's share of each. What may leave together is what falls into
-- AHEAD ms, so that an account with many requests a minute is not held up by the rounds of asking.
local BUCKET, MINUTE, ERRORS, AHEAD = 250, 62000, 20, 250
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local bucket = math.floor(now / BUCKET)
local process, lease = ARGV[1], tonumber(ARGV[2])
local most, per_minute, tokens_per_minute = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local state, processes, held, window = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local function number(field) return tonumber(redis.call('HGET', state, field) or '0') end

-- Redis' clock was set back: every time that is kept moves with it, else the window would stay full, and slots of dead
-- processes held, until the clock is again where it was.
local seen = number('seen')
if now < seen - 1000 then
  local back = seen - now
  for _, field in ipairs({'paused_until', 'open_until', 'next_at'}) do
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
local known = redis.call('ZSCORE', processes, process)
redis.call('ZADD', processes, now + lease, process)
local ended = tonumber(ARGV[6])
local mine = tonumber(redis.call('HGET', held, process) or '0')
if ended > 0 then mine = math.max(0, mine - ended) end

-- Circuit: 20 errors in a row open it; then one call at a time tries, and every failure doubles the wait.
local opened, open_until = number('opened'), number('open_until')
local errors = number('errors')
if ARGV[7] == '1' then errors, opened, open_until = 0, 0, 0 end
local failed = tonumber(ARGV[8])
if failed > 0 then
  errors = errors + failed
  if errors >= ERRORS and (open_until <= now or number('trying') == 1) then
    open_until = now + math.min(60000, tonumber(ARGV[10]) * 2 ^ opened)
    opened = opened + 1
    redis.call('HSET', state, 'trying', 0)
  end
end
redis.call('HSET', state, 'errors', errors, 'opened', opened, 'open_until', open_until)
local open_for = math.max(0, open_until - now)

local pause = tonumber(ARGV[9])
local paused_until = number('paused_until')
if pause > 0 then
  paused_until = math.max(paused_until, now + pause)
  redis.call('HSET', state, 'paused_until', paused_until)
end

-- The window: buckets older than a minute fall out whole, so no minute ever holds more than the limit.
local requests, tokens, oldest = 0, 0, nil
local metered = per_minute > 0 or tokens_per_minute > 0
local next_arg = 12
for _ = 1, tonumber(ARGV[11]) do
  local field = 't' .. ARGV[next_arg]
  if metered and redis.call('HEXISTS', window, field) == 1 then
    redis.call('HINCRBYFLOAT', window, field, -tonumber(ARGV[next_arg + 1]))
  end
  next_arg = next_arg + 2
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

local asked = #ARGV - next_arg + 1
local granted, wait = 0, 0
local interval, next_at = per_minute > 0 and MINUTE / per_minute or 0, math.max(now, number('next_at'))
if asked > 0 then
  local blocked = math.max(paused_until, open_until)
  if blocked > now then
    wait = blocked - now
  else
    local room = asked
    if errors >= ERRORS then room = 1 end
    if most > 0 then
      local out = 0
      for _, count in ipairs(redis.call('HVALS', held)) do out = out + tonumber(count) end
      out = out - tonumber(redis.call('HGET', held, process) or '0') + mine
      if out + room > most then room, wait = math.max(0, most - out), 50 end
    end
    local taken = 0
    while granted < room do
      if next_at > now + math.max(0, AHEAD - interval) then
        wait = math.max(50, next_at - now - math.max(0, AHEAD - interval))
        break
      end
      local cost = tonumber(ARGV[next_arg + granted])
      if tokens_per_minute > 0 then cost = math.min(cost, tokens_per_minute) end
      if (per_minute > 0 and requests + granted + 1 > per_minute)
          or (tokens_per_minute > 0 and tokens + taken + cost > tokens_per_minute) then
        wait = math.max(50, ((oldest or bucket) + 1) * BUCKET + MINUTE - now)
        break
      end
      granted, taken, next_at = granted + 1, taken + cost, next_at + interval
    end
    if granted > 0 then
      mine = mine + granted
      if metered then
        redis.call('HINCRBY', window, 'r' .. bucket, granted)
        redis.call('HINCRBYFLOAT', window, 't' .. bucket, taken)
      end
      if per_minute > 0 then redis.call('HSET', state, 'next_at', next_at) end
      if errors >= ERRORS then
        -- One call tries; the others wait until it has ended, or at most this long.
        redis.call('HSET', state, 'trying', 1, 'open_until', now + 60000)
      end
    end
  end
end
redis.call('HSET', held, process, mine)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, 600000) end
return {granted, math.ceil(wait), bucket, opened, known and 0 or 1, math.ceil(open_for)}
