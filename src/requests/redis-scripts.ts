/**
 * What has to happen as one in Redis, each as one script: KEYS[1] is the common prefix (with a hash tag, so that a
 * cluster keeps all keys together), times are milliseconds given by the caller. A script checks everything first and
 * writes after, because Redis does not roll back.
 */

/**
 * ARGV: mode (create|update|events), now, id, expected version, state, host, record, created, is open (1|0),
 * chain seq, chain hash as read, new chain hash, count of events, then per event: request, host, json;
 * then the count of totals to change, per total: name, difference; then channel, and the views to deliver.
 * Answers {'ok'} | {'exists'|'host_busy'|'changed', record or ''} | {'head', seq, hash}.
 */
export const writeScript = `
local p = KEYS[1]
local mode, now, id, expected, state, host = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local record, created, open = ARGV[7], ARGV[8], ARGV[9]
local key = p .. 'request:' .. id
if mode == 'create' then
  local same = redis.call('HGET', key, 'record')
  if same then return {'exists', same} end
  local busy = redis.call('HGET', p .. 'open', host)
  if busy then return {'host_busy', redis.call('HGET', p .. 'request:' .. busy, 'record') or ''} end
elseif mode == 'update' then
  local now_there = redis.call('HMGET', key, 'version', 'record')
  if now_there[1] ~= expected then return {'changed', now_there[2] or ''} end
end
local count = tonumber(ARGV[13])
if count > 0 then
  local head = redis.call('HMGET', p .. 'chain', 'seq', 'hash')
  if (head[1] or '0') ~= ARGV[10] or (head[2] or ARGV[11]) ~= ARGV[11] then
    return {'head', head[1] or '0', head[2] or ''}
  end
end
if mode ~= 'events' then
  redis.call('HSET', key, 'version', expected + 1, 'state', state, 'host', host, 'record', record)
  if mode == 'create' then
    redis.call('ZADD', p .. 'requests', created, id)
    redis.call('ZADD', p .. 'requests:' .. host, created, id)
  end
  if open == '1' then redis.call('HSET', p .. 'open', host, id)
  elseif redis.call('HGET', p .. 'open', host) == id then redis.call('HDEL', p .. 'open', host) end
end
local at = 14
for n = 1, count do
  local seq = tonumber(ARGV[10]) + n
  redis.call('HSET', p .. 'events', seq, ARGV[at + 2])
  redis.call('RPUSH', p .. 'events:request:' .. ARGV[at], seq)
  redis.call('RPUSH', p .. 'events:host:' .. ARGV[at + 1], seq)
  at = at + 3
end
if count > 0 then redis.call('HSET', p .. 'chain', 'seq', tonumber(ARGV[10]) + count, 'hash', ARGV[12]) end
local totals = tonumber(ARGV[at])
at = at + 1
for _ = 1, totals do
  redis.call('HINCRBY', p .. 'totals', ARGV[at], ARGV[at + 1])
  at = at + 2
end
local channel = ARGV[at]
if channel ~= '' then
  for n = at + 1, #ARGV do
    local dkey = id .. '.' .. ARGV[n]
    local d = p .. 'delivery:' .. dkey
    redis.call('HSETNX', d, 'deliveredRevision', '0')
    redis.call('HSETNX', d, 'attempts', '0')
    redis.call('HSET', d, 'key', dkey, 'channel', channel, 'requestId', id, 'view', ARGV[n])
    redis.call('HINCRBY', d, 'revision', 1)
    redis.call('HDEL', d, 'givenUp')
    if redis.call('ZSCORE', p .. 'due', dkey) == false then
      redis.call('HSET', d, 'since', now)
      redis.call('ZADD', p .. 'due', redis.call('INCR', p .. 'due:order'), dkey)
    end
  end
  if #ARGV > at then redis.call('PUBLISH', p .. 'wake', '') end
end
return {'ok'}
`;

/** ARGV: claimer, now, claimed until, limit. Answers the keys claimed, oldest first. */
export const claimScript = `
local p, claimed = KEYS[1], {}
for _, dkey in ipairs(redis.call('ZRANGE', p .. 'due', 0, -1)) do
  if #claimed >= tonumber(ARGV[4]) then break end
  local d = p .. 'delivery:' .. dkey
  local v = redis.call('HMGET', d, 'notBefore', 'claimedUntil')
  if tonumber(v[1] or '0') <= tonumber(ARGV[2]) and tonumber(v[2] or '0') <= tonumber(ARGV[2]) then
    redis.call('HSET', d, 'claimedBy', ARGV[1], 'claimedUntil', ARGV[3])
    redis.call('HINCRBY', d, 'attempts', 1)
    claimed[#claimed + 1] = dkey
  end
end
return claimed
`;

/** ARGV: key, claimer, outcome (delivered|retry|given_up), its value, message ts or ''. */
export const settleScript = `
local p = KEYS[1]
local d = p .. 'delivery:' .. ARGV[1]
local mine = redis.call('HGET', d, 'claimedBy') == ARGV[2]
if ARGV[3] == 'delivered' then
  local v = redis.call('HMGET', d, 'revision', 'deliveredRevision')
  if not v[1] then return 0 end
  local done = math.max(tonumber(v[2]), tonumber(ARGV[4]))
  redis.call('HSET', d, 'deliveredRevision', done, 'attempts', 0)
  redis.call('HDEL', d, 'notBefore')
  if ARGV[5] ~= '' then redis.call('HSET', d, 'messageTs', ARGV[5]) end
  if done >= tonumber(v[1]) then redis.call('ZREM', p .. 'due', ARGV[1]) end
elseif mine and ARGV[3] == 'retry' then
  redis.call('HSET', d, 'notBefore', ARGV[4])
elseif mine then
  redis.call('HSET', d, 'givenUp', ARGV[4])
  redis.call('ZREM', p .. 'due', ARGV[1])
end
if mine then redis.call('HDEL', d, 'claimedBy', 'claimedUntil') end
return 1
`;

/** ARGV: name, holder, now, until. Answers 1 when held. */
export const holdScript = `
local key = KEYS[1] .. 'hold:' .. ARGV[1]
local v = redis.call('HMGET', key, 'holder', 'until')
if v[1] and v[1] ~= ARGV[2] and tonumber(v[2]) > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', key, 'holder', ARGV[2], 'until', ARGV[4])
-- Judged by the caller's clock above; forgotten by the server's, well after, so that names used once do not pile up.
redis.call('PEXPIRE', key, ARGV[4] - ARGV[3] + 3600000)
return 1
`;

/** ARGV: name, holder. */
export const releaseScript = `
local key = KEYS[1] .. 'hold:' .. ARGV[1]
if redis.call('HGET', key, 'holder') == ARGV[2] then redis.call('DEL', key) end
return 1
`;

/**
 * ARGV: id. Removes a request with its messages, unless it is open or something of it still waits for delivery. Its audit
 * events stay. Answers 1 when removed.
 */
export const forgetScript = `
local p, id = KEYS[1], ARGV[1]
local host = redis.call('HGET', p .. 'request:' .. id, 'host')
if host and redis.call('HGET', p .. 'open', host) == id then return 0 end
local views = {'card', 'details', 'outcome', 'plan_file', 'receipt_file', 'picture'}
for _, view in ipairs(views) do
  if redis.call('ZSCORE', p .. 'due', id .. '.' .. view) then return 0 end
end
for _, view in ipairs(views) do redis.call('DEL', p .. 'delivery:' .. id .. '.' .. view) end
redis.call('DEL', p .. 'request:' .. id)
redis.call('ZREM', p .. 'requests', id)
if host then redis.call('ZREM', p .. 'requests:' .. host, id) end
return 1
`;

/** ARGV: per event to forget, oldest first: seq, request, host. The head of the chain is kept elsewhere, so it goes on. */
export const forgetEventsScript = `
local p = KEYS[1]
for n = 1, #ARGV, 3 do
  redis.call('HDEL', p .. 'events', ARGV[n])
  redis.call('LREM', p .. 'events:request:' .. ARGV[n + 1], 1, ARGV[n])
  redis.call('LREM', p .. 'events:host:' .. ARGV[n + 2], 1, ARGV[n])
  redis.call('HSET', p .. 'chain', 'first', ARGV[n] + 1)
end
return #ARGV / 3
`;

/**
 * Takes in a piece of a backup. ARGV: count of requests, per request: id, version, state, host, record, created; then the
 * head this goes on from (seq, hash), the head after, count of events, per event: seq, request, host, json.
 * Answers 1, or 0 when the head is not what was said.
 */
export const restoreScript = `
local p, at = KEYS[1], 2
local requests = tonumber(ARGV[1])
local rest = at + requests * 6
local head = redis.call('HMGET', p .. 'chain', 'seq', 'hash')
if head[1] and (head[1] ~= ARGV[rest] or head[2] ~= ARGV[rest + 1]) then return 0 end
for _ = 1, requests do
  local id = ARGV[at]
  local key = p .. 'request:' .. id
  if redis.call('EXISTS', key) == 0 then
    redis.call('HSET', key, 'version', ARGV[at + 1], 'state', ARGV[at + 2], 'host', ARGV[at + 3], 'record', ARGV[at + 4])
    redis.call('ZADD', p .. 'requests', ARGV[at + 5], id)
    redis.call('ZADD', p .. 'requests:' .. ARGV[at + 3], ARGV[at + 5], id)
  end
  at = at + 6
end
local events = tonumber(ARGV[rest + 4])
at = rest + 5
if events > 0 and not redis.call('HGET', p .. 'chain', 'first') then redis.call('HSET', p .. 'chain', 'first', ARGV[at]) end
for _ = 1, events do
  redis.call('HSET', p .. 'events', ARGV[at], ARGV[at + 3])
  redis.call('RPUSH', p .. 'events:request:' .. ARGV[at + 1], ARGV[at])
  redis.call('RPUSH', p .. 'events:host:' .. ARGV[at + 2], ARGV[at])
  at = at + 4
end
if events > 0 then redis.call('HSET', p .. 'chain', 'seq', ARGV[rest + 2], 'hash', ARGV[rest + 3]) end
return 1
`;
