-- State: the debt in permits, and its rest in permits times ticks below one unit; the instant of
-- the debt; outstanding permits.
local function bucket()
  local TB={size=function() return 8 end,terms=function() return 4 end}
  -- a*b/c: quotient and remainder. The remainder is exact if (b+c)*2^10 is, up to 31 days, and the
  -- quotient if it is below 2^53: a is split into digits of ten bits, the upper ones first.
  local function share(a,b,c)
    local product=a*b
    if product<FAR then
      local whole=floor(product/c)
      return whole,product-whole*c
    end
    local low=a%1024
    local whole,rest=share((a-low)/1024,b,c)
    rest=rest*1024+low*b
    local more=floor(rest/c)
    return whole*1024+more,rest-more*c
  end
  -- Permits that drain in this time.
  local function flow(r,ticks,rate)
    local rpu,unit=rate or r.rpu,r.unit
    if ticks<unit then return share(ticks,rpu,unit) end
    local part=ticks%unit
    local permits,rest=share(part,rpu,unit)
    return (ticks-part)/unit*rpu+permits,rest
  end
  local function ticks(r,permits,rest,rate)
    local rpu=rate or r.rpu
    if rpu==0 then return FAR end
    local whole,more=share(permits,r.unit,rpu)
    return min(whole+ceil((more+rest)/rpu),FAR)
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
  local function least(permits,rest,permits2,rest2)
    if permits>permits2 or permits==permits2 and rest>rest2 then return permits2,rest2 end
    return permits,rest
  end
  local function drained(r,at)
    local s=r.s
    if s[3]==at then return s[1],s[2] end
    return less(r,s[1],s[2],flow(r,at-s[3]))
  end
  -- The end of the debt, in permits: a number that every charge moves, and that draining does not.
  local function turn(r)
    local s=r.s
    local permits,rest=flow(r,s[3]%(4194304*r.unit))
    return (permits+s[1]+floor((rest+s[2])/r.unit))%(4194304*r.rpu)
  end
  -- Returns true if the latest request may not have left yet.
  local function waits(r)
    local permits,rest=drained(r,now)
    return permits>r.a or permits==r.a and rest>0
  end
  -- Leased permits count as unspent while they are outstanding.
  local function settle(r,s)
    local out,first=s[5]+s[6],long(s[4])
    local term=first
    while out>0 do
      local at=min((term+1)*LONG,now)
      s[1],s[2]=drained(r,at)
      s[3]=at
      if s[1]<out then s[1],s[2]=out,0 end
      if term>=long(current) then break end
      out=term==first and s[6] or 0
      term=term+1
    end
    age(s,4)
  end
  local function give_back(r,s)
    local permits,rest,since=r.back,0,r.receipt
    local counted=comes_in(r,s,4)
    if r.block>0 then
      -- After its last term it may have drained, like the cost of a request at any time.
      since=(long(r.term)+2)*LONG
      if since>now and not counted then return end
    elseif r.b>=0 then
      since=now
      local others=(turn(r)-r.receipt)%(4194304*r.rpu)
      if others~=0 then
        -- The position stays empty if later requests may still be held.
        if r.a<0 or r.rpu==0 or waits(r) then return end
        -- Drained permits may have included these. They did not if all later charges are still
        -- undrained; a turn is rounded.
        local kept,part=less(r,permits,0,flow(r,max(0,s[3]-r.term*TERM),r.fastest))
        permits,rest=most(kept,part,max(0,min(permits,s[1]-others-1)),0)
      end
    end
    if since<s[3] then
      -- Other charges may have been made under any plan.
      local gone,part=least(permits,0,flow(r,s[3]-since,r.fastest))
      permits,rest=less(r,permits,0,gone,part)
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
  function TB.reset(r,kept)
    local s=r.s
    s[1],s[2],s[3],r.permits,r.rest=kept,0,now,kept,0
  end
  function TB.charge(r,permits,delay)
    local s=r.s
    r.permits,r.rest=until_it_leaves(r,delay,r.permits,r.rest)
    r.permits=r.permits+permits
    s[1],s[2],s[3]=r.permits,r.rest,now
  end
  function TB.charged(r) return r.permits+ceil(r.rest/r.unit) end
  function TB.left(r)
    local owed=TB.charged(r)
    if r.a<0 then return r.rpu>0 and owed==0 and 1 or 0 end
    return max(0,r.a-owed)
  end
  -- Arrears that exceed the permits are a debt, so that they are not admitted again after an outage.
  function TB.most_owed(r,overdraft) return max(0,r.a+overdraft-TB.charged(r)) end
  function TB.room(r) return r.b<0 and max(0,floor(r.a/2)-r.s[5]-r.s[6]) or 0 end
  function TB.receipt(r) return r.b<0 and now or turn(r) end
  TB.lease=TB.receipt
  function TB.spend() return FAR end
  function TB.life(r) return max(ticks(r,r.a<0 and r.unit_cost or r.a,0),2*LONG)+max(r.b,0) end
  function TB.ends(r)
    local s=r.s
    local ends=s[3]+(s[1]+s[2]>0 and ticks(r,s[1],s[2],r.lasting) or 0)
    return max(ends,over(s,5,long(s[4]),LONG))-now
  end
  return TB
end
