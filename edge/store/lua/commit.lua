-- The only script that writes state: checks the guards, then does every operation, or nothing at all.
--
-- ARGV[1]  MessagePack: { guards, operations, work }
--   guards      { {"revision", key, text} | {"absent", key} | {"fewer", key, member, limit} , ... }
--   operations  { {command, argument, ...}, ... }
--   work        { key, group, consumer, entries }: entries are appended to the stream, then as many are taken off its queue for the
--               consumer, so that the caller can go on without asking for work again; or an empty table.
-- Returns { 1, taken entries as XREADGROUP gives them } or { 0, the key whose guard failed }.
-- Keys travel inside ARGV[1]: the product talks to one server, never to a cluster.

local guards, operations, work = unpack(cmsgpack.unpack(ARGV[1]))

local holds = {
  revision = function(key, expected)
    return (redis.call('HGET', key, 'rev') or '0') == expected
  end,
  absent = function(key)
    return redis.call('EXISTS', key) == 0
  end,
  fewer = function(key, member, limit)
    return redis.call('ZSCORE', key, member) or redis.call('ZCARD', key) < limit
  end,
}

for _, guard in ipairs(guards) do
  if not holds[guard[1]](guard[2], guard[3], guard[4]) then
    return { 0, guard[2] }
  end
end

for _, operation in ipairs(operations) do
  redis.call(unpack(operation))
end

if #work == 0 then
  return { 1, {} }
end

local key, group, consumer, entries = unpack(work)
for _, entry in ipairs(entries) do
  redis.call('XADD', key, '*', unpack(entry))
end
local function take()
  return redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', #entries, 'STREAMS', key, '>')
end
local taken = take()
if type(taken) == 'table' and taken.err and string.find(taken.err, '^NOGROUP') then
  redis.call('XGROUP', 'CREATE', key, group, '0')
  taken = take()
end
if type(taken) ~= 'table' or taken.err then
  return { 1, {} }
end
return { 1, taken[1][2] }
