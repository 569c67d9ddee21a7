-- The only script that writes state: checks the guards, then does every operation; where a guard fails, none.
--
-- Nobody sees, and no power cut leaves, a part of it. But Redis does not undo what was done before an operation that
-- errs, and the ones after it are not done: one that can err stands before those that must not be done without it.
-- An operation with more arguments than Lua hands over is refused before the first one is done.
--
-- ARGV[1]  MessagePack: { guards, operations }
--   guards      { {"revision", key, text} | {"absent", key} | {"fewer", key, member, limit} | {"holds", key, text}
--                 | {"field", key, name, text or nil} , ... }
--   operations  { {command, argument, ...}, ... }
-- Returns the key whose guard failed, or nothing but an empty text.
-- Keys travel inside ARGV[1]: the product talks to one server, never to a cluster.

local guards, operations = unpack(cmsgpack.unpack(ARGV[1]))
local MOST_ARGUMENTS = 7000 -- unpack hands over fewer than 8,000 values

local met = {
  revision = function(key, expected)
    return (redis.call('HGET', key, 'rev') or '0') == expected
  end,
  absent = function(key)
    return redis.call('EXISTS', key) == 0
  end,
  fewer = function(key, member, limit)
    return redis.call('ZSCORE', key, member) or redis.call('ZCARD', key) < limit
  end,
  holds = function(key, text)
    return redis.call('GET', key) == text
  end,
  field = function(key, name, text)
    return redis.call('HGET', key, name) == (text or false)
  end,
}

for _, guard in ipairs(guards) do
  if not met[guard[1]](guard[2], guard[3], guard[4]) then
    return guard[2]
  end
end

for _, operation in ipairs(operations) do
  if #operation > MOST_ARGUMENTS then
    return redis.error_reply('ERR ' .. operation[1] .. ' has ' .. #operation .. ' arguments: nothing was written')
  end
end

for _, operation in ipairs(operations) do
  redis.call(unpack(operation))
end
return ''
