-- State: number, used, first, and what is out.
local function window()
  local W={size=function() return 8 end,terms=function() return 4 end}
  local function here(r) return max(0,wall+r.a) end
  function W.spend(r)
    local s,unit=r.s,r.unit
    return min((s[1]+1)*unit-here(r),s[3]+unit-now)
  end
  function W.open(r)
    local s=r.s
    if s[3]>now or s[4]>current then return end
    age(s,4)
    if r.back+r.block>0 and s[3]==r.receipt then
      comes_in(r,s,4)
      s[2]=max(0,s[2]-r.back)
    end
    if s[2]==0 or W.spend(r)<=0 then
      s[1],s[2],s[3]=floor(here(r)/r.unit),0,now
      nothing_is_out(s,4)
    end
    return true
  end
  function W.judge(r)
    if r.cost>r.rpu then return NEVER end
    return r.s[2]+r.cost>r.rpu and W.spend(r) or 0,0
  end
  function W.without(r,permits) return r.s[2]-permits+r.cost<=r.rpu and 0 or W.spend(r) end
  function W.charge(r,permits) r.s[2]=r.s[2]+permits end
  function W.left(r) return max(0,r.rpu-r.s[2]) end
  function W.room() return FAR end
  function W.receipt(r) return r.s[3] end
  W.lease=W.receipt
  function W.life(r) return r.unit end
  -- Not before a window that the wall clock comes back to could still be in force.
  function W.ends(r) return (r.s[2]>0 and r.s[3]+r.unit or 0)-now end
  return W
end
