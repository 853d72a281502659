/**
 * What has to happen as one in Redis, each as one script: KEYS[1] is the common prefix (with a hash tag, so that a
 * cluster keeps all keys together), times are milliseconds given by the caller. A script checks everything first and
 * writes after, because Redis does not roll back.
 */

/**
 * ARGV: mode (create|update|events), now, id, expected version, state, host, record, created, is open (1|0),
 * chain seq, chain hash as read, new chain hash, count of events, then per event: request, host, json;
 * then channel, and the views to deliver.
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
return 1
`;

/** ARGV: name, holder. */
export const releaseScript = `
local key = KEYS[1] .. 'hold:' .. ARGV[1]
if redis.call('HGET', key, 'holder') == ARGV[2] then redis.call('DEL', key) end
return 1
`;
