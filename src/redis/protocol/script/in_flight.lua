-- In-flight slots. State: the term; unconfirmed slots that were taken in the previous term and in
-- this one; then the number of each holder and of its slots, which count while it sends heartbeats.
-- Each message contains the number of all slots of the caller in that holder, so that lost data is
-- restored by the next request that starts or ends.
local LIVES,KEPT=1500,2678400000
local alive={}
local function in_flight()
  -- Longer than a worker takes to confirm a slot, at any distance.
  local current=floor(now/SECOND)
  local P={size=function() return 0 end,spend=function() return 0 end}
  local function name(id) return KEYS[2]..(':h%.0f'):format(id) end
  local function lives(id)
    if alive[id]==nil then alive[id]=call('EXISTS',name(id))==1 end
    return alive[id]
  end
  local function read(value)
    local s=unpack(value)
    for i=1,#s do
      if not whole(s[i]) then return end
    end
    return #s>2 and #s%2==1 and s[1]<=current and s
  end
  function P.load(r)
    local value=get('GET',r.key)
    local ok,s=pcall(read,value or pack({current,0,0}))
    if ok and s then return s end
    corrupt=corrupt+1
    return {current,0,0}
  end
  function P.open(r)
    local old,what=r.s,r.what
    if r.a>0 and not alive[r.a] then
      call('SET',name(r.a),1,'PX',LIVES)
      alive[r.a]=true
    end
    local s={current,0,0}
    if old[1]==current then s[2],s[3]=old[2],old[3] elseif old[1]==current-1 then s[2]=old[3] end
    local own=what>2 and r.back>0 and r.back-1
    local t=3+r.receipt-current
    if what==3 and (t==2 or t==3) and s[t]>0 then s[t]=s[t]-1 end
    r.taken=s[2]+s[3]
    local function keep(id,held)
      if held<=0 or not lives(id) then return end
      r.taken=r.taken+held
      s[#s+1],s[#s+2]=id,held
    end
    for i=4,#old,2 do
      local id,held=old[i],old[i+1]
      if own and id==r.a then held,own=own,0 end
      keep(id,held)
    end
    keep(r.a,own or 0)
    r.s=s
    return true
  end
  function P.judge(r)
    if r.cost>r.rpu then return NEVER,0 end
    return r.taken+r.cost>r.rpu and SOON_AGAIN or 0,0
  end
  function P.charge(r,permits) r.s[3],r.taken=r.s[3]+permits,r.taken+permits end
  function P.left(r) return max(0,r.rpu-r.taken) end
  function P.receipt() return current end
  P.lease=P.receipt
  function P.save(r)
    local s=r.s
    if #s==3 and s[2]+s[3]==0 then return call('DEL',r.key) end
    call('SET',r.key,pack(s),'PX',#s>3 and KEPT or 3000)
  end
  return P
end
