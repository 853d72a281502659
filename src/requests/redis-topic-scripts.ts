/** What has to happen as one for topics, each as one script; the conventions are those of redis-scripts.ts. */
import { topicViews } from '../alerts/topics.ts';

/** Puts views up for delivery: needs the locals p, now, id, channel, and the list `views`. */
const deliverLua = `
if channel ~= '' and #views > 0 then
  for _, view in ipairs(views) do
    local dkey = id .. '.' .. view
    local d = p .. 'delivery:' .. dkey
    redis.call('HSETNX', d, 'deliveredRevision', '0')
    redis.call('HSETNX', d, 'attempts', '0')
    redis.call('HSET', d, 'key', dkey, 'channel', channel, 'requestId', id, 'view', view)
    redis.call('HINCRBY', d, 'revision', 1)
    redis.call('HDEL', d, 'givenUp')
    if redis.call('ZSCORE', p .. 'due', dkey) == false then
      redis.call('HSET', d, 'since', now)
      redis.call('ZADD', p .. 'due', redis.call('INCR', p .. 'due:order'), dkey)
    end
  end
  redis.call('PUBLISH', p .. 'wake', '')
end
`;

/**
 * ARGV: mode (create|update), now, id, expected version, slot or '', updated, topic, channel or '', and the views to
 * deliver. Answers {'ok'} | {'exists'|'slot_taken'|'changed', topic or ''}.
 */
export const topicScript = `
local p = KEYS[1]
local mode, now, id, expected, slot = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local updated, topic, channel = ARGV[6], ARGV[7], ARGV[8]
local key = p .. 'topic:' .. id
local there = redis.call('HMGET', key, 'version', 'topic', 'slot')
if mode == 'create' then
  if there[1] then return {'exists', there[2]} end
  local other = slot ~= '' and redis.call('HGET', p .. 'slots', slot)
  if other then return {'slot_taken', redis.call('HGET', p .. 'topic:' .. other, 'topic') or ''} end
elseif there[1] ~= expected then return {'changed', there[2] or ''} end
redis.call('HSET', key, 'version', expected + 1, 'topic', topic, 'slot', slot)
if mode == 'create' and slot ~= '' then redis.call('HSET', p .. 'slots', slot, id) end
if slot == '' then
  if there[3] and there[3] ~= '' then redis.call('HDEL', p .. 'slots', there[3]) end
  redis.call('ZADD', p .. 'topics:over', updated, id)
end
local views = {}
for n = 9, #ARGV do views[#views + 1] = ARGV[n] end
${deliverLua}
return {'ok'}
`;

/** ARGV: now, sweep id, host, row, channel or '', view. */
export const rowScript = `
local p, now, id, channel = KEYS[1], ARGV[1], ARGV[2], ARGV[5]
redis.call('HSET', p .. 'rows:' .. id, ARGV[3], ARGV[4])
local views = {ARGV[6]}
${deliverLua}
return 1
`;

/** ARGV: id of a topic that is over. Answers 1 when removed, 0 while something of it waits for delivery. */
export const forgetTopicScript = `
local p, id = KEYS[1], ARGV[1]
local views = {${topicViews.map((view) => `'${view}'`).join(', ')}}
for _, view in ipairs(views) do
  if redis.call('ZSCORE', p .. 'due', id .. '.' .. view) then return 0 end
end
for _, view in ipairs(views) do redis.call('DEL', p .. 'delivery:' .. id .. '.' .. view) end
redis.call('DEL', p .. 'topic:' .. id, p .. 'rows:' .. id)
redis.call('ZREM', p .. 'topics:over', id)
return 1
`;
