-- State: the end of the ban, the level, the newest slice, and counters of eight slices.
local function ban()
  local B={size=function() return 11 end,is_never_shared=true}
  function B.open(r)
    local s,slice=r.s,floor(now/r.unit)
    if s[3]>slice or s[1]-now>2*r.b then return end
    for new=max(s[3]+1,slice-7),slice do s[4+new%8]=0 end
    s[3],r.begins=slice,0
    return true
  end
  -- In place of a level: the ban was reset, at the instant in place of its end. Refusals do not
  -- count for a second after a reset, since they may arrive late, or come from a worker that still
  -- enforces the ban.
  local WAS_RESET=1000
  local function level(s) return s[2]==WAS_RESET and 0 or s[2] end
  function B.left(r) return max(0,r.s[1]-now) end
  -- A cost of zero only checks whether the caller is banned.
  B.look=B.left
  function B.judge() return 0,0 end
  function B.charge(r,refusals)
    local s=r.s
    if s[1]>now or s[2]==WAS_RESET and now<s[1]+SECOND then return end
    local i=4+s[3]%8
    s[i]=s[i]+refusals
    local recent=0
    for n=4,11 do recent=recent+s[n] end
    if recent<r.rpu then return end
    local times=max(0,level(s)-floor((now-s[1])/r.c))
    local length=min(r.a*2^times,r.b)
    for i=4,11 do s[i]=0 end
    s[1],s[2],r.begins=now+length,length<r.b and times+1 or times,1
  end
  -- Ends the ban, or bans for the given time.
  function B.reset(r)
    local s=r.s
    for i=1,11 do s[i]=0 end
    s[3]=floor(now/r.unit)
    if r.receipt>0 then s[1]=now+r.receipt else s[1],s[2]=now,WAS_RESET end
  end
  function B.receipt(r) return r.begins end
  function B.lease() return 0 end
  B.spend=B.lease
  -- The maximum number of levels, and one for rounding errors of the logarithms.
  function B.life(r)
    local levels=ceil(math.log(r.b/r.a)/math.log(2))+1
    return max(r.b+levels*r.c,8*r.unit)
  end
  function B.ends(r)
    local s=r.s
    return max(s[1]+level(s)*r.c,(s[3]+8)*r.unit)-now
  end
  return B
end
