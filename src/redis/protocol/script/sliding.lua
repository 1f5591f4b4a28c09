-- State: the newest slice, then a ring of counters, one for each slice and one more, and
-- outstanding permits.
local function sliding()
  local SW={size=function(r) return r.a+7 end,terms=function(r) return r.a+3 end}
  local function start(r,slice)
    return floor(slice/r.a)*r.unit+ceil(slice%r.a*r.unit/r.a)
  end
  local function place(r,slice) return 2+slice%(r.a+1) end
  function SW.open(r)
    local s,a,unit=r.s,r.a,r.unit
    local newest,past=s[1],now%unit
    local slice=(now-past)/unit*a+floor(past*a/unit)
    if newest>slice or s[r.t]>current then return end
    age(s,r.t)
    for new=max(newest+1,slice-a),slice do s[place(r,new)]=0 end
    s[1]=slice
    if r.back+r.block>0 then comes_in(r,s,r.t) end
    if r.back>0 and r.receipt<=slice and r.receipt>=slice-a then
      local i=place(r,r.receipt)
      s[i]=max(0,s[i]-r.back)
    end
    local sum=0
    for i=2,a+2 do sum=sum+s[i] end
    r.sum=sum
    return true
  end
  -- Ticks until at most this many permits count. The slice that must expire is found from the
  -- newest one on, since sums beyond 2^53 are not exact.
  local function until_forgotten(r,most)
    local slice,kept=r.s[1]+1,0
    if r.sum<=most then return 0 end
    repeat
      slice=slice-1
      kept=kept+r.s[place(r,slice)]
    until kept>most or slice<=r.s[1]-r.a
    return start(r,slice+r.a+1)-now
  end
  function SW.judge(r)
    if r.cost>r.rpu then return NEVER end
    return until_forgotten(r,r.rpu-r.cost),0
  end
  function SW.reset(r,kept)
    local s=r.s
    for i=2,r.a+2 do s[i]=0 end
    s[place(r,s[1])],r.sum=kept,kept
  end
  function SW.note(r,permits)
    local used,newest=r.used,r.s[1]
    if r.receipt>newest or r.receipt<newest-r.a then return end
    local i=place(r,r.receipt)
    used.s[i],used.sum=min(used.s[i]+permits,USED),used.sum+permits
  end
  function SW.reset_used(r,s,used)
    r.sum,r.used.sum=0,0
    for i=2,r.a+2 do
      s[i],used[i]=max(0,s[i]-used[i]),0
      r.sum=r.sum+s[i]
    end
  end
  function SW.charged(r) return min(r.sum,USED) end
  function SW.charge(r,permits)
    local i=place(r,r.s[1])
    r.s[i],r.sum=min(r.s[i]+permits,USED),r.sum+permits
  end
  function SW.left(r) return max(0,r.rpu-r.sum) end
  -- Arrears must count until they expire, so usage that expires earlier leaves them as much room.
  function SW.most_owed(r) return max(0,r.rpu-r.s[place(r,r.s[1])]) end
  function SW.room() return FAR end
  function SW.receipt(r) return r.s[1] end
  SW.lease=SW.receipt
  function SW.spend(r) return start(r,r.s[1]+1)-now end
  function SW.life(r) return r.unit+2*ceil(r.unit/r.a) end
  function SW.ends(r) return r.sum==0 and 0 or start(r,r.s[1]+r.a+1)-now end
  return SW
end
