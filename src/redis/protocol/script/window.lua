-- The end and the length of the current window. The gateway sends the bounds of some windows; all
-- others are one unit long.
local function planned(r)
  local from=r.a[1]
  if from<=wall then
    for i=2,#r.a do
      if wall<r.a[i] then return r.a[i],r.a[i]-from end
      from=r.a[i]
    end
  end
  return from+(floor((wall-from)/r.unit)+1)*r.unit,r.unit
end
-- State: the end on the wall clock, usage, the first charge, the latest end, and outstanding
-- permits.
local function window()
  local W={size=function() return 9 end,terms=function() return 5 end}
  function W.spend(r) return min(r.s[1]-wall,r.s[4]-now) end
  -- Starts a window with this usage.
  local function begin(r,used)
    local ends,length=planned(r)
    r.s[1],r.s[2],r.s[3],r.s[4]=ends,used,now,now+length
  end
  function W.open(r)
    local s=r.s
    if s[3]>now or s[5]>current then return end
    age(s,5)
    if r.back+r.block>0 and s[4]==r.receipt then
      comes_in(r,s,5)
      s[2]=max(0,s[2]-r.back)
    end
    if s[2]==0 or W.spend(r)<=0 then
      begin(r,0)
      nothing_is_out(s,5)
    end
    return true
  end
  function W.judge(r)
    if r.cost>r.rpu then return NEVER end
    return r.s[2]+r.cost>r.rpu and W.spend(r) or 0,0
  end
  -- A window that begins now invalidates older receipts.
  W.reset=begin
  -- The separate usage belongs to the same window.
  function W.join(r,s,used)
    if s[2]==0 or used[1]~=s[1] or used[4]~=s[4] then used[2]=0 end
    used[1],used[3],used[4]=s[1],s[3],s[4]
  end
  function W.note(r,permits)
    local s=r.used.s
    if r.s[2]>0 and r.s[4]==r.receipt then s[2]=min(s[2]+permits,USED) end
  end
  function W.reset_used(r,s,used) s[2],used[2]=max(0,s[2]-used[2]),0 end
  function W.charged(r) return r.s[2] end
  function W.charge(r,permits) r.s[2]=min(r.s[2]+permits,USED) end
  function W.left(r) return max(0,r.rpu-r.s[2]) end
  function W.room() return FAR end
  function W.receipt(r) return r.s[4] end
  W.lease=W.receipt
  function W.life(r) return r.unit end
  -- The value must outlive every window that the wall clock may return to.
  function W.ends(r) return (r.s[2]>0 and r.s[4] or 0)-now end
  return W
end
