-- State: debt in permits, and a rest in permits times ticks below one unit; when it was that much;
-- the newest term, and what is out of leases that were taken in the term before it and in it.
local function bucket()
  local TB={size=function() return 6 end}
  local current=floor(now/TERM)
  -- a*b/c: whole and rest, exact as long as a/2^16*b and (b+c)*2^16 are.
  local function share(a,b,c)
    local product=a*b
    if product<FAR then
      local whole=floor(product/c)
      return whole,product-whole*c
    end
    local low=a%65536
    local high=(a-low)/65536*b
    local whole=floor(high/c)
    local rest=(high-whole*c)*65536+low*b
    local more=floor(rest/c)
    return whole*65536+more,rest-more*c
  end
  -- What drains.
  local function flow(r,ticks)
    local rpu,unit=r.rpu,r.unit
    if ticks<unit then return share(ticks,rpu,unit) end
    local part=ticks%unit
    local permits,rest=share(part,rpu,unit)
    return (ticks-part)/unit*rpu+permits,rest
  end
  local function ticks(r,permits,rest)
    if r.rpu==0 then return FAR end
    local whole,more=share(permits,r.unit,r.rpu)
    return min(whole+ceil((more+rest)/r.rpu),FAR)
  end
  local function less(r,permits,rest,permits2,rest2)
    permits,rest=permits-permits2,rest-rest2
    if rest<0 then permits,rest=permits-1,rest+r.unit end
    if permits<0 then return 0,0 end
    return permits,rest
  end
  local function most(permits,rest,permits2,rest2)
    if permits<permits2 or permits==permits2 and rest<rest2 then return permits2,rest2 end
    return permits,rest
  end
  local function drained(r,at)
    local s=r.s
    if s[3]==at then return s[1],s[2] end
    return less(r,s[1],s[2],flow(r,at-s[3]))
  end
  -- The end of the debt, in permits; a number that every charge moves and draining does not.
  local function turn(r)
    local s=r.s
    local permits,rest=flow(r,s[3]%(4194304*r.unit))
    return (permits+s[1]+floor((rest+s[2])/r.unit))%(4194304*r.rpu)
  end
  local function settle(r,s)
    local out=s[5]+s[6]
    while out>0 do
      local at=min((s[4]+1)*TERM,now)
      local permits,rest=drained(r,at)
      s[1],s[2]=most(permits,rest,out,0)
      s[3]=at
      if s[4]==current then return end
      s[4],s[5],s[6]=s[4]+1,s[6],0
      out=s[5]
    end
    s[4]=current
  end
  local function give_back(r,s)
    local permits,rest=r.back,0
    if r.block>0 then
      local term=6+r.receipt-s[4]
      if term~=5 and term~=6 or s[term]<r.block then return end
      s[term]=s[term]-r.block
    elseif r.b>=0 then
      if turn(r)~=r.receipt then return end
    else
      permits,rest=less(r,permits,rest,flow(r,max(0,s[3]-r.receipt)))
    end
    s[1],s[2]=less(r,s[1],s[2],permits,rest)
  end
  function TB.open(r)
    local s=r.s
    if s[3]>now or s[4]>current then return end
    settle(r,s)
    if r.back+r.block>0 then give_back(r,s) end
    r.permits,r.rest=drained(r,now)
    return true
  end
  local function until_it_leaves(r,delay,permits,rest)
    if r.b<0 or delay==0 then return permits,rest end
    return most(permits,rest,flow(r,delay))
  end
  function TB.judge(r,delay)
    local cost,burst=r.cost,r.a
    if burst<0 then burst=cost end
    if r.rpu==0 or cost>burst then return NEVER end
    local permits,rest=until_it_leaves(r,delay,less(r,r.permits+cost,r.rest,burst,0))
    if permits+rest==0 then return 0,0 end
    local wait=ticks(r,permits,rest)
    if r.b<0 then return wait end
    local far,more=flow(r,r.b)
    if r.c<=far then far,more=r.c,0 end
    return ticks(r,less(r,permits,rest,far,more)),wait
  end
  function TB.charge(r,permits,delay)
    local s=r.s
    r.permits,r.rest=until_it_leaves(r,delay,r.permits,r.rest)
    r.permits=r.permits+permits
    s[1],s[2],s[3]=r.permits,r.rest,now
  end
  function TB.left(r)
    local owed=r.permits+ceil(r.rest/r.unit)
    if r.a<0 then return r.rpu>0 and owed==0 and 1 or 0 end
    return max(0,r.a-owed)
  end
  function TB.room(r) return r.b<0 and max(0,floor(r.a/2)-r.s[5]-r.s[6]) or 0 end
  function TB.lend(r,block) r.s[6]=r.s[6]+block end
  function TB.receipt(r) return r.b<0 and now or turn(r) end
  function TB.lease(r) return r.s[4] end
  function TB.spend(r) return (r.s[4]+2)*TERM-now end
  function TB.ends(r)
    local s=r.s
    local ends=s[3]+ticks(r,s[1],s[2])
    if s[5]+s[6]>0 then ends=max(ends,(s[4]+2)*TERM) end
    return ends-now
  end
  return TB
end
