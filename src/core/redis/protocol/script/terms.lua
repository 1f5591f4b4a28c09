-- What is out of a caller's permits, by the term in which it went out: the newest term, what was leased in
-- the long term before it and in it, and what was charged tentatively in the term before it and in it. It lies
-- in a state from t on. What went out in a term can come back until the end of the next one. A lease is spent for
-- a much shorter time than a long term, so that what is left of it comes back while it still counts, also from
-- whom something delays; a tentative charge comes back at once or never.
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
-- When the last of two terms' charges is over.
local function over(s,i,term,length)
  return s[i+1]>0 and (term+2)*length or s[i]>0 and (term+1)*length or 0
end
local function all_over(s,t)
  return max(over(s,t+1,long(s[t]),LONG),over(s,t+3,s[t],TERM))
end
-- Counts a block, or a tentative charge, as out no longer, if it still counts. Whether it did.
local function comes_in(r,s,t)
  local i,terms,permits=t+2,long(s[t])-long(r.term),r.block
  if permits==0 then i,terms,permits=t+4,s[t]-r.term,r.back end
  if terms~=0 and terms~=1 or s[i-terms]<permits then return end
  s[i-terms]=s[i-terms]-permits
  return true
end
-- How long a refusal lasts, and for how long it is one for what is out only; zero if it is one for what was
-- used. It must not be remembered for longer than that keeps the request out.
local function lasts(r)
  local kind,s,t=r.kind,r.s,r.t
  if not t or r.retry<=0 then return r.retry,0 end
  local out,slack=all_out(s,t),kind.slack and kind.slack(r) or 0
  local retry=kind.without(r,out)
  if retry==0 then return r.retry,min(r.retry,all_over(s,t)-now) end
  if retry<=slack then return r.retry,min(r.retry,2*LONG) end
  -- FAR stands for whatever is longer.
  return retry<FAR and min(r.retry,retry-slack) or r.retry,0
end
-- The same; or that it ends when what is reserved turns out not to count, which may be at any time.
local function refusal(r)
  local retry,loan=lasts(r)
  if r.used and retry>0 and loan==0 and r.kind.judge(r.used,0)==0 then return SOON_AGAIN,0 end
  return retry,loan
end
