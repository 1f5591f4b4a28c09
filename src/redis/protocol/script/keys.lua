-- Limits the number of callers of a rule with a separate value: new callers beyond it share 1,024
-- buckets. Gateways may have different numbers for one rule, and so compute different lifetimes of
-- a value. So a value has the instant of its expiry behind its state, and the count of a rule
-- depends on these instants only. State: the end of the latest bucket, then pairs of an instant and
-- the number of values that expire at it. It is read and written for new callers, and for callers
-- whose expiry moves to another slice.
local BUCKETS=1024
local counters={}
local function counter(r)
  local name=r.own:sub(1,-33)
  local c=counters[name]
  if c then return c end
  local s=load(name..'2:n')
  c={name=name,shared=s[1] or 0,live={}}
  for i=2,#s,2 do
    if s[i]>now then c.live[s[i]]=s[i+1] end
  end
  counters[name]=c
  return c
end
-- The instant at which the caller's value expires: the end of a slice, and at least a second after
-- it has lost its meaning. Instants that are further apart make the count smaller.
local function expiry(r,ends)
  return min((floor(min(now+ends+SECOND,FAR)/r.slice)+1)*r.slice,FAR-1)
end
-- The initial state of a new caller: empty, or the state of the bucket that it may have shared.
local function newcomer(r,size)
  local c,live=counter(r),0
  for _,callers in pairs(c.live) do live=live+callers end
  r.overflow=live>=r.keys and 1 or 0
  if r.kind.is_never_shared or r.overflow==0 and now>=c.shared then return zeros(size) end
  local bucket=c.name..('o%x'):format(tonumber(r.own:sub(-19,-17),16)%BUCKETS)
  if r.overflow==1 then r.key,r.want=bucket,0 end
  return (load(bucket,size))
end
-- Counts a value that is written and expires after this time, at this instant, or is deleted.
local function count(r,ends,at)
  if at==r.was then return end
  local c=counter(r)
  local live=c.live
  c.changed=true
  if r.overflow==1 then
    c.shared=max(c.shared,min(now+(ends or 0)+SECOND,FAR/2))
    return
  end
  if live[r.was] then live[r.was]=max(0,live[r.was]-1) end
  if at then live[at]=(live[at] or 0)+1 end
end
local function save_counters()
  for _,c in pairs(counters) do
    if c.changed then
      local s,n,last={c.shared},1,c.shared
      for at,callers in pairs(c.live) do
        if callers>0 then
          s[n+1],s[n+2]=at,callers
          n,last=n+2,max(last,at)
        end
      end
      call('SET',c.name..'2:n',pack(s),'PX',max(0,floor((last-now)/1000))+1000)
    end
  end
end
