local floor,ceil,min,max=math.floor,math.ceil,math.min,math.max
local NEVER,SOON_AGAIN,STILL,ALIVE,SECOND,FAR=-1,-2,1000000,1000000,1000000,2^53
-- Usage stops here. Numbers from FAR on are corrupt, and earlier versions add without an end.
local USED=FAR/2-1
local TERM,LONG,LEASE=100000,500000,400000
local CHECKS,LOOKS,RESETS,REPORTS=6,7,8,9
local spread=unpack
local call,pack,unpack=redis.call,cmsgpack.pack,cmsgpack.unpack
local wall=tonumber(ARGV[1])
if not wall then
  local time=call('TIME')
  wall=time[1]*1000000+time[2]
end
-- The monotonic clock; see clock.lua.
local now
local corrupt=0
-- Reads a key. Values of other types than strings are corrupt.
local function get(...)
  local value=redis.pcall(...)
  if type(value)~='table' then return value end
  if not value.err:find('WRONGTYPE',1,true) then return call(...) end
  corrupt=corrupt+1
end
local function whole(x) return x and x>=0 and x<FAR and x%1==0 end
-- The numbers of a value, and the number behind them. Without a size, they are odd in number.
local function read(value,size)
  local s,more=unpack(value)
  for i=1,size or #s do
    if not whole(s[i]) then return end
  end
  return (#s==size or not size and #s%2==1) and s,whole(more) and more
end
local function zeros(size)
  local s={}
  for i=1,size do s[i]=0 end
  return s
end
-- Returns a state, whether it exists (true, false, or 0 if the value is corrupt), and the number
-- behind it.
local function load(key,size)
  local value=get('GET',key)
  if not value then return zeros(size or 0),false end
  local ok,s,more=pcall(read,value,size)
  if ok and s then return s,true,more end
  corrupt=corrupt+1
  return zeros(size or 0),0
end
