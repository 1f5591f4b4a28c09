-- Outstanding permits of a caller by terms: the newest term, leases of the previous long term and
-- of the current one, and tentative charges of the previous term and of the current one, at offset
-- t of a state. Permits can be returned until the end of the next term. A lease is spent for a much
-- shorter time than a long term, so that its rest is returned while it still counts, also by a
-- delayed worker. A tentative charge is returned at once or never.
local current=floor(now/TERM)
local function long(term) return floor(term*TERM/LONG) end
local function nothing_is_out(s,t)
  s[t],s[t+1],s[t+2],s[t+3],s[t+4]=current,0,0,0,0
end
local function pass(s,i,terms)
  if terms==1 then s[i],s[i+1]=s[i+1],0 elseif terms>1 then s[i],s[i+1]=0,0 end
end
local function age(s,t)
  pass(s,t+1,long(current)-long(s[t]))
  pass(s,t+3,current-s[t])
  s[t]=max(s[t],current)
end
local function all_out(s,t) return s[t+1]+s[t+2]+s[t+3]+s[t+4] end
-- The end of the last of two terms with charges.
local function over(s,i,term,length)
  return s[i+1]>0 and (term+2)*length or s[i]>0 and (term+1)*length or 0
end
-- Removes a block or a tentative charge from the outstanding permits. Returns true if it still
-- counted.
local function comes_in(r,s,t)
  local i,terms,permits=t+2,long(s[t])-long(r.term),r.block
  if permits==0 then i,terms,permits=t+4,s[t]-r.term,r.back end
  if terms~=0 and terms~=1 or s[i-terms]<permits then return end
  s[i-terms]=s[i-terms]-permits
  return true
end
-- The retry delay of a refusal, and whether it may end earlier because of outstanding permits. If
-- it may end at any time, because a reservation may not count, the retry delay is SOON_AGAIN.
local function refusal(r)
  if r.retry<=0 then return r.retry,0 end
  if r.t and all_out(r.s,r.t)>0 then return r.retry,1 end
  if r.used and r.kind.judge(r.used,0)==0 then return SOON_AGAIN,0 end
  return r.retry,0
end
