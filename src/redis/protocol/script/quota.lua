-- A piece of the filter of a daily quota: the end of the day, its latest end, and permits per
-- count; then counters of b bits each. c lists the bit offsets of the account's counters, two bytes
-- each. A piece of another day is replaced as a whole.
local function quota()
  local Q={size=function() return 3 end}
  local byte,HEAD,REST=string.byte,24,3968
  local function most(r) return min(r.rpu,(2^r.b-1)*r.s[3]) end
  function Q.spend(r) return min(r.s[1]-wall,r.s[2]-now) end
  function Q.load(r)
    local head=get('GETRANGE',r.key,0,HEAD-1) or ''
    if head=='' then return zeros(3) end
    local s=#head==HEAD and {struct.unpack('>ddd',head)} or {-1}
    for i=1,3 do
      if not whole(s[i]) then
        corrupt=corrupt+1
        return zeros(3)
      end
    end
    return s
  end
  -- A command with an operation for each of the account's counters.
  local function fields(r,add)
    local command,size={'BITFIELD',r.key},'u'..r.b
    for i=1,#r.c,2 do add(command,#command,size,byte(r.c,i)*256+byte(r.c,i+1),(i+1)/2) end
    return call(spread(command))
  end
  function Q.open(r)
    local s=r.s
    if s[2]>now+r.unit then return end
    r.fresh,r.count,r.charged=s[3]==0 or Q.spend(r)<=0,0,false
    if r.fresh then
      local ends,length=planned(r)
      s[1],s[2],s[3]=ends,now+length,r.unit_cost
    else
      r.counts=fields(r,function(c,n,size,bit) c[n+1],c[n+2],c[n+3]='GET',size,bit end)
      r.count=min(spread(r.counts))
    end
    return true
  end
  function Q.judge(r)
    if r.cost>r.rpu then return NEVER end
    return r.count*r.s[3]+r.cost>most(r) and Q.spend(r) or 0,0
  end
  function Q.charge(r,permits) r.count,r.charged=r.count+ceil(permits/r.s[3]),true end
  function Q.left(r) return max(0,most(r)-r.count*r.s[3]) end
  function Q.room() return 0 end
  function Q.receipt() return 0 end
  Q.lease=Q.receipt
  function Q.save(r)
    local s=r.s
    if not r.charged then return end
    if r.fresh then
      local ends=s[2]-now
      local empty=struct.pack('>ddd',s[1],s[2],s[3])..('\0'):rep(REST)
      call('SET',r.key,empty,'PX',floor(ends/1000)+1000)
    end
    fields(r,function(c,n,size,bit,i)
      if r.fresh or r.counts[i]<r.count then c[n+1],c[n+2],c[n+3],c[n+4]='SET',size,bit,r.count end
    end)
  end
  return Q
end
