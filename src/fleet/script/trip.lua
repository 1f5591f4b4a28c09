-- Each gateway proposes the seed that it uses; asks under another are not decided.
local seed=get(KEYS[1])
if seed~=ARGV[3] then
  if seed and #seed==32 and not seed:find('[^0-9a-f]') then return {seed} end
  call('SET',KEYS[1],ARGV[3])
end
call('SET',KEYS[2],pack(clock))
-- It is enough if a gateway says once a second that it lives.
local gateways=KEYS[3]
local lived=redis.pcall('ZSCORE',gateways,ARGV[2])
if type(lived)~='string' or now-lived>=ALIVE then
  if not ({zset=1,none=1})[call('TYPE',gateways).ok] then call('DEL',gateways) end
  call('ZADD',gateways,now,ARGV[2])
  call('ZREMRANGEBYSCORE',gateways,'-inf',now-5*ALIVE)
  call('PEXPIRE',gateways,5*ALIVE/1000)
end
local answer,said={call('ZCOUNT',gateways,now-5*ALIVE+1,'+inf'),0},2
local words,place,keys=unpack(ARGV[4]),0,3
local made={}
local function rule(r)
  local w,p=words,place
  place,keys=p+14,keys+1
  local kind=made[w[p+1]]
  if not kind then
    kind=({W=window,SW=sliding,TB=bucket,LB=bucket})[w[p+1]]()
    made[w[p+1]]=kind
  end
  r.kind,r.rpu,r.unit,r.a,r.b,r.c=kind,w[p+2],w[p+3],w[p+4],w[p+5],w[p+6]
  r.cost,r.grain,r.want,r.soon,r.shadow=w[p+7],w[p+8],w[p+9],w[p+10],w[p+11]==1
  r.receipt,r.block,r.back=w[p+12],w[p+13],w[p+14]
  r.key,r.lift,r.changed=KEYS[keys],0,r.block+r.back>0
  local size=kind.size(r)
  r.s=load(r.key,size)
  -- What was written later than now was not written by this clock.
  if not kind.open(r) then
    foreign,r.s=foreign+1,zeros(size)
    kind.open(r)
  end
  if r.cost>0 then r.retry,r.wait=kind.judge(r,0) else r.retry,r.wait=0,0 end
end
local rules={}
-- When it leaves, if all agree.
local function judge(count,delay)
  for i=1,count do
    local r=rules[i]
    if not r.shadow then
      if r.retry~=0 then return end
      if r.wait>delay then delay=r.wait end
    end
  end
  if delay==0 then return 0 end
  local agreed=delay
  for i=1,count do
    local r=rules[i]
    if r.cost>0 and not r.shadow and r.wait<delay then
      r.lift=delay
      r.retry=r.kind.judge(r,delay)
      if r.retry~=0 then agreed=nil end
    end
  end
  return agreed
end
-- What is spent within a span, of which only a part may be left.
local function part(permits,life,span)
  return life<span and ceil(permits*life/span) or permits
end
-- A block is at most an eighth of what is left, or else what is needed soon; and what can be spent
-- while it lives.
local function block_of(r,left,life)
  local soon=part(r.soon,life,SOON)
  local want=max(part(r.want,life,IDLE),soon)
  local most=min(want,max(floor(left/8),min(soon,left)),r.kind.room(r),65536)
  return max(0,most-most%r.grain)
end
local function lend_ahead(r,left)
  local kind=r.kind
  local starts,ends=kind.next(r)
  local spend=min(ends,starts+LEASE)
  local lent=block_of(r,left,spend-starts)
  if lent==0 then return end
  kind.lend_ahead(r,lent)
  r.changed=true
  -- What fits in the slice in force may be spent at once.
  if r.sum<=r.rpu then starts=1 end
  return 0,lent,kind.lease(r)+1,starts,spend
end
local function charge(r,delay)
  local kind,cost,lent=r.kind,r.cost,0
  local left=cost==0 and r.want>0 and kind.ahead and kind.ahead(r)
  if left then
    local receipt,lent,lease,starts,spend=lend_ahead(r,left)
    if lent then return receipt,lent,lease,starts,spend end
  end
  if r.want>0 and (r.shadow and r.wait or delay)==0 then
    lent=block_of(r,kind.left(r)-cost,min(LEASE,kind.spend(r)))
  end
  if cost+lent==0 then
    if r.want>0 then
      r.cost=r.grain
      r.retry=(kind.judge(r,0))
    end
    return 0,0,0,0,0
  end
  kind.charge(r,cost+lent,r.lift)
  if lent>0 and kind.lend then kind.lend(r,lent) end
  r.changed=true
  return kind.receipt(r),lent,kind.lease(r),0,min(LEASE,kind.spend(r))
end
local function save(r)
  local ends=r.kind.ends(r)
  if ends<=0 then return call('DEL',r.key) end
  -- A second more, so that it is still there after a small step back.
  call('SET',r.key,pack(r.s),'PX',floor(ends/1000)+1000)
end
while place<#words do
  local count,delay=words[place+1],words[place+2]
  place=place+2
  for i=1,count do
    rules[i]=rules[i] or {}
    rule(rules[i])
  end
  local leaves=judge(count,delay)
  said=said+1
  answer[said]=leaves or NEVER
  for i=1,count do
    local r=rules[i]
    local receipt,lent,lease,starts,spend=0,0,0,0,0
    if leaves and r.retry==0 then receipt,lent,lease,starts,spend=charge(r,leaves) end
    if r.changed then save(r) end
    answer[said+1],answer[said+2],answer[said+3]=r.retry,r.kind.left(r),receipt
    answer[said+4],answer[said+5],answer[said+6],answer[said+7]=lent,lease,starts,spend
    said=said+7
  end
end
answer[2]=foreign
return answer
