local proposed=ARGV[3]
local is_first=#proposed==32
-- Each gateway proposes its seed. Asks under another seed are not decided.
if is_first then
  local seed=get('GET',KEYS[1])
  if seed~=proposed then
    if seed and #seed==32 and not seed:find('[^0-9a-f]') then return {seed} end
    call('SET',KEYS[1],proposed)
  end
end
call('SET',KEYS[2],pack(clock))
-- A call may be sent twice. Its answer is stored, so that the other attempt gets the same one,
-- whichever arrives first. One that arrives after the sender's next call is not decided.
local slot,number=(ARGV[5] or ''):match('^(%w+:%d+):(%d+)$')
if slot then
  slot,number=KEYS[3]..':call:'..slot,tonumber(number)
  local value=get('GET',slot)
  local ok,latest,stored=pcall(unpack,value or '')
  if ok and whole(latest) and type(stored)=='table' then
    if latest==number then return stored end
    if latest>number then return {} end
  elseif value then
    corrupt=corrupt+1
  end
end
-- A gateway sends a heartbeat at most once a second, and the same for its number of shards.
local function count_alive(all,own)
  local lived=redis.pcall('ZSCORE',all,own)
  if type(lived)~='string' or now-lived>=ALIVE then
    if not ({zset=1,none=1})[call('TYPE',all).ok] then call('DEL',all) end
    call('ZADD',all,now,own)
    call('ZREMRANGEBYSCORE',all,'-inf',now-5*ALIVE)
    call('PEXPIRE',all,5*ALIVE/1000)
  end
  return call('ZCOUNT',all,now-5*ALIVE+1,'+inf')
end
-- Other shards than the first do not count gateways, and return only their number.
local answer={is_first and count_alive(KEYS[3],ARGV[2]) or -proposed,0,now}
if ARGV[6] and ARGV[6]~='' then answer[4]=count_alive(KEYS[3]..':parts',ARGV[6]) end
local length=#answer
-- The first asks may be settlements. A repeated batch was already applied.
local done=0
if ARGV[7] and ARGV[7]~='' then
  local ledger=KEYS[#KEYS]
  if (tonumber(get('GET',ledger)) or 0)>=tonumber(ARGV[7]) then
    done=tonumber(ARGV[8])
  else
    call('SET',ledger,ARGV[7],'PX',86400000)
  end
end
local words,place,keys=unpack(ARGV[4]),0,3
local made={}
-- A rule's state has the format of its kind. A window of a rule with reservations has two states:
-- one of reserved and used permits, for decisions, and one of used permits only.
local function open(r,s,size)
  r.s,r.used=s,nil
  if #s>size then
    r.s={spread(s,1,size)}
    r.used=setmetatable({s={spread(s,size+1,2*size)},back=0,block=0},{__index=r})
  end
end
local function is_open(r)
  local kind,used=r.kind,r.used
  if not kind.open(r) or used and not kind.open(used) then return end
  if used and kind.join then kind.join(r,r.s,used.s) end
  return true
end
local function ends_of(r)
  local kind,used=r.kind,r.used
  return used and max(kind.ends(r),kind.ends(used)) or kind.ends(r)
end
-- Reserved permits of requests in progress, if they are stored separately from usage.
local function reserved(r)
  local kind=r.kind
  return r.used and max(0,kind.charged(r)-kind.charged(r.used)) or 0
end
-- Resets usage: only outstanding and reserved permits stay charged. Reservations may still be
-- returned.
local function reset(r)
  local kind=r.kind
  r.changed=true
  if r.used then return kind.reset_used(r,r.s,r.used.s) end
  kind.reset(r,r.t and all_out(r.s,r.t) or 0)
end
-- Permits of a total that the gateway admitted without Redis, and that are not charged yet. The
-- charged part is stored for a minute, since the reply may be lost, and the total sent again. Each
-- total of a gateway begins later than the one before, which a late question may still contain.
local function arrears(key,total,since)
  local s=load(key,2)
  local new=since>s[1] and total or since==s[1] and max(0,total-s[2]) or 0
  if new>0 then call('SET',key,pack({since,total}),'PX',60000) end
  return new
end
-- Reads the next question into r, and opens its state. r.a, r.b and r.c are the numbers of the
-- kind (numbers.rs), r.want the permits to lease, r.back and r.block returned permits. r.s is
-- the state, r.t the offset of its outstanding permits. r.own is the caller's key, r.key the key to
-- write: r.own or that of a shared bucket. is_over: the batch of settlements was already applied.
local function rule(r,is_over)
  local w,p=words,place
  place,keys=p+20,keys+1
  local kind=made[w[p+1]]
  if not kind then
    kind=({W=window,SW=sliding,TB=bucket,LB=bucket,B=ban,Q=quota,P=in_flight})[w[p+1]]()
    made[w[p+1]]=kind
  end
  r.kind,r.rpu,r.unit,r.a,r.b,r.c=kind,w[p+2],w[p+3],w[p+4],w[p+5],w[p+6]
  r.cost,r.unit_cost,r.want,r.shadow=w[p+7],w[p+8],w[p+9],w[p+10]==1
  r.ahead=w[p+20]
  r.what,r.keys=w[p+11],w[p+12]
  r.tentative=r.what==1
  r.receipt,r.term,r.block,r.back=w[p+13],w[p+14],w[p+15],w[p+16]
  -- For callers that may switch to another plan: the lowest rate, the longest lifetime of a value,
  -- the highest rate.
  r.lasting,r.longest,r.fastest=r.rpu,0,r.rpu
  if w[p+18]~=0 then r.lasting,r.longest,r.fastest=spread(w[p+18]) end
  -- Settled permits plus one; zero if usage is not stored separately.
  local debt,counted=0,w[p+17]
  if is_over then
    r.what,r.block,r.back,counted=r.what==REPORTS and r.what or 0,0,0,min(counted,1)
  elseif r.what==2 or r.what==REPORTS then
    debt,r.back=r.back,0
  end
  r.own,r.delay,r.changed=KEYS[keys],0,r.block+r.back+debt>0 or counted>1
  r.key=r.own
  r.t=kind.terms and kind.terms(r)
  local size=kind.size(r)
  local whole_size=counted>0 and 2*size or size
  r.was,r.overflow,r.sum=nil,0,nil
  if kind.load then
    open(r,kind.load(r),FAR)
  else
    local s,is_there,expires=load(r.key,whole_size)
    r.slice=ceil(min((r.longest>0 and r.longest or kind.life(r))+SECOND,FAR)/8)
    if not is_there then s=newcomer(r,whole_size) end
    open(r,s,size)
    r.was=expires
  end
  -- A state later than now is corrupt, since it was not written by this clock.
  if not is_open(r) then
    corrupt=corrupt+1
    open(r,zeros(whole_size),size)
    is_open(r)
  end
  if debt>0 then kind.charge(r,debt,0) end
  if w[p+19]~=0 then
    keys=keys+1
    local total,since,overdraft=spread(w[p+19])
    local most=kind.most_owed and kind.most_owed(r,overdraft) or kind.left(r)
    local owed=min(arrears(KEYS[keys],total,since),most)
    if owed>0 then
      r.changed=true
      kind.charge(r,owed,0)
      if r.used then kind.charge(r.used,owed,0) end
    end
  end
  if counted>1 then
    kind.note(r,max(0,counted-1-debt))
    kind.charge(r.used,debt,0)
  end
  if r.what==RESETS and r.overflow==0 then reset(r) end
  r.retry,r.wait,r.term=0,0,0
  if r.cost>0 then
    r.retry,r.wait=kind.judge(r,0)
  elseif kind.look then
    r.retry=kind.look(r)
  end
end
local rules={}
-- The delay of an ask, if all rules admit it.
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
      r.delay=delay
      r.retry=r.kind.judge(r,delay)
      if r.retry~=0 then agreed=nil end
    end
  end
  return agreed
end
-- A block: at most the requested permits, those that are expected to be spent within its life and
-- two requests more, and an equal part of the remaining ones if other workers have blocks, or
-- the permits of one request.
local function block_of(r,left,life)
  local want=life<r.ahead and min(ceil(r.want*life/r.ahead)+2*r.unit_cost,r.want) or r.want
  local s,t=r.s,r.t
  local parts=max(1,min(floor((s[t+1]+s[t+2])/(4*r.want)),8))
  local most=min(want,left,max(floor(left/parts),r.unit_cost),r.kind.room(r),65536)
  return max(0,most-most%r.unit_cost)
end
-- Counts leased and tentatively charged permits as outstanding. r.term becomes their term.
local function out_goes(r,block,cost)
  local s,t=r.s,r.t
  r.changed=true
  if not t then return end
  r.term=current
  s[t+2]=s[t+2]+block
  if r.tentative then s[t+4]=s[t+4]+cost end
end
local function charge(r,delay)
  local kind,cost,block=r.kind,r.cost,0
  if r.what>=LOOKS then
    local ends=kind.ends and ends_of(r) or kind.spend(r)
    if r.what==REPORTS then ends=min(ends,kind.spend(r)) end
    local charged=kind.charged and kind.charged(r) or max(0,r.rpu-kind.left(r))
    return r.t and not r.used and all_out(r.s,r.t) or 0,reserved(r),max(0,ends),charged,0
  end
  if r.what==CHECKS or kind.is_never_shared and r.overflow==1 then return 0,0,0,0,0 end
  if r.want>0 and (r.shadow and r.wait or delay)==0 then
    block=block_of(r,kind.left(r)-cost,min(LEASE,kind.spend(r)))
  end
  if cost+block==0 then
    if r.want>0 then
      r.cost=r.unit_cost
      r.retry=(kind.judge(r,0))
    end
    return 0,0,0,0,0
  end
  kind.charge(r,cost+block,r.delay)
  out_goes(r,block,cost)
  return kind.receipt(r),block,kind.lease(r),0,min(LEASE,kind.spend(r))
end
local function save(r)
  if r.kind.save then return r.kind.save(r) end
  local s,t=r.s,r.t
  -- Without outstanding permits, the term needs no memory.
  if t and all_out(s,t)==0 then s[t]=0 end
  local ends=ends_of(r)
  if ends<=0 then
    count(r)
    return call('DEL',r.key)
  end
  local at=expiry(r,ends)
  count(r,ends,at)
  if r.used then
    s={spread(s)}
    for i=1,#r.used.s do s[#s+1]=r.used.s[i] end
  end
  -- Expires when it is no longer counted, so that a caller is never counted twice. That is at least
  -- a second more, so that the value still exists after a small step back.
  call('SET',r.key,pack(s,at),'PX',ceil((at-now)/1000))
end
local asks=0
while place<#words do
  asks=asks+1
  local count,delay=words[place+1],words[place+2]
  place=place+2
  for i=1,count do
    rules[i]=rules[i] or {}
    rule(rules[i],asks<=done)
  end
  local leaves=judge(count,delay)
  length=length+1
  answer[length]=leaves or NEVER
  for i=1,count do
    local r=rules[i]
    local receipt,block,lease,starts,spend=0,0,0,0,0
    -- Requests for usage succeed whatever the other rules decide.
    if leaves and r.retry==0 or r.what>=LOOKS then receipt,block,lease,starts,spend=charge(r,leaves or 0) end
    answer[length+1],answer[length+2]=refusal(r)
    answer[length+3]=r.kind.left(r)
    answer[length+4],answer[length+5],answer[length+6]=receipt,r.term,block
    answer[length+7],answer[length+8],answer[length+9],answer[length+10]=lease,starts,spend,r.overflow
    if r.changed then save(r) end
    length=length+10
  end
end
save_counters()
answer[2]=corrupt
-- A gateway sends the number of its rules about once a second, and gets how many are in use.
if ARGV[9] and ARGV[9]~='' then
  length=length+1
  answer[length]=count_alive(KEYS[3]..':rules',ARGV[9])
end
-- As often it sends a higher ordinal than before, and gets the highest one that was here. In
-- another store that is a lower one.
if ARGV[10] then
  local name=KEYS[3]..':ordinal:'..ARGV[2]
  local latest=tonumber(get('GET',name) or '')
  latest=whole(latest) and latest or 0
  answer[length+1]=latest
  call('SET',name,max(latest,ARGV[10]),'PX',60000)
end
if slot then call('SET',slot,pack(number,answer),'PX',2000) end
return answer
