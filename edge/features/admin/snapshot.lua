-- Reads everything below a prefix at one instant: nothing is written while it runs, and it writes nothing.
--
-- ARGV[1]  the prefix with its colon; it holds none of the characters of a pattern
-- Returns { {key, type, ttl, content, ...}, ... }: the key without the prefix, milliseconds left or -1, and
--   string  its text        hash  fields and values      set  members      zset  members and scores
--   list  elements
--   stream  entries, the last id, { {group, last delivered id, { {id, consumer}, ... }}, ... }

local MANY = 1000000

local function value(answer, name)
  for index = 1, #answer, 2 do
    if answer[index] == name then
      return answer[index + 1]
    end
  end
end

local function groups(key)
  local found = {}
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    local name, pending = value(group, 'name'), {}
    for index, entry in ipairs(redis.call('XPENDING', key, name, '-', '+', MANY)) do
      pending[index] = { entry[1], entry[2] }
    end
    found[#found + 1] = { name, value(group, 'last-delivered-id'), pending }
  end
  return found
end

local read = {
  string = function(key) return redis.call('GET', key) end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  stream = function(key)
    local last = value(redis.call('XINFO', 'STREAM', key), 'last-generated-id')
    return redis.call('XRANGE', key, '-', '+'), last, groups(key)
  end,
}

local seen, found, cursor = {}, {}, '0'
repeat
  local answer = redis.call('SCAN', cursor, 'MATCH', ARGV[1] .. '*', 'COUNT', 1000)
  cursor = answer[1]
  for _, key in ipairs(answer[2]) do
    local kind = redis.call('TYPE', key)['ok']
    if not seen[key] and read[kind] then
      seen[key] = true
      found[#found + 1] = { string.sub(key, #ARGV[1] + 1), kind, redis.call('PTTL', key), read[kind](key) }
    end
  end
until cursor == '0'
return found
