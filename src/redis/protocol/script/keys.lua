-- Limits the number of callers of a rule with a separate value: new callers beyond it share 1,024
-- buckets. State: the length of a slice, the current slice, the end of the latest bucket, and a
-- ring that counts callers by the slice in which their values expire. No value lives longer than
-- eight slices, including a second. It is read and written for new callers, and for callers whose
-- expiry moves to another slice.
local BUCKETS,RING=1024,9
local counters={}
local function counter(r)
  local name=r.own:sub(1,-33)
  local c=counters[name]
  if c then return c end
  local s,newest=load(name..'n',3+RING),floor(now/r.slice)
  if s[1]==r.slice and s[2]>newest then corrupt,s=corrupt+1,zeros(3+RING) end
  if s[1]~=r.slice then
    -- With other limits, values expire at other times, and are counted from zero.
    local shared=s[3]
    s=zeros(3+RING)
    s[1],s[2],s[3]=r.slice,newest,shared
  end
  for old=s[2],min(newest-1,s[2]+RING-1) do s[4+old%RING]=0 end
  s[2]=newest
  c={s=s,name=name}
  counters[name]=c
  return c
end
-- The slice in which the caller's value expires, a second after it has lost its meaning. The value
-- exists until the end of the slice.
local function slot(r,ends) return floor(min(now+ends+SECOND,FAR)/r.slice) end
-- The initial state of a new caller: empty, or the state of the bucket that it may have shared.
local function newcomer(r,size)
  local c,live=counter(r),0
  local s=c.s
  for i=4,3+RING do live=live+s[i] end
  r.overflow=live>=r.keys and 1 or 0
  if r.kind.is_never_shared or r.overflow==0 and now>=s[3] then return zeros(size) end
  local bucket=c.name..('o%x'):format(tonumber(r.own:sub(-19,-17),16)%BUCKETS)
  if r.overflow==1 then r.key,r.want=bucket,0 end
  return (load(bucket,size))
end
-- Counts a value that is written and expires after this time, or is deleted.
local function count(r,ends)
  local new=ends and slot(r,ends)
  if new==r.was then return end
  local c=counter(r)
  local s=c.s
  c.changed=true
  if r.overflow==1 then
    s[3]=max(s[3],min(now+(ends or 0)+SECOND,FAR/2))
    return
  end
  local was,newest=r.was,s[2]
  if was and was>=newest and was<newest+RING then s[4+was%RING]=max(0,s[4+was%RING]-1) end
  if new then
    new=4+min(new,newest+RING-1)%RING
    s[new]=s[new]+1
  end
end
local function save_counters()
  for _,c in pairs(counters) do
    if c.changed then call('SET',c.name..'n',pack(c.s),'PX',floor(RING*c.s[1]/1000)+1000) end
  end
end
