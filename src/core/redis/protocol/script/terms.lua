-- What is out of a caller's permits, by the term in which it went out: the newest term, what was leased in
-- the term before it and in it, and what was charged tentatively in the two. It lies in a state from t
-- on. What went out in a term can come back until the end of the next one. A lease is spent for a much
-- shorter time, so that what is left of it comes back while it still counts, also from whom something delays.
local current=floor(now/TERM)
local over=(current+2)*TERM-now
local function nothing_is_out(s,t)
  s[t],s[t+1],s[t+2],s[t+3],s[t+4]=current,0,0,0,0
end
local function age(s,t)
  if current-s[t]==1 then
    s[t],s[t+1],s[t+2],s[t+3],s[t+4]=current,s[t+2],0,s[t+4],0
  elseif current>s[t] then
    nothing_is_out(s,t)
  end
end
local function all_out(s,t) return s[t+1]+s[t+2]+s[t+3]+s[t+4] end
-- Counts a block, or a tentative charge, as out no longer, if it still counts. Whether it did.
local function comes_in(r,s,t)
  local i=t+2+r.term-s[t]
  if i~=t+1 and i~=t+2 then return end
  local permits=r.block
  if permits==0 then i,permits=i+2,r.back end
  if s[i]<permits then return end
  s[i]=s[i]-permits
  return true
end
-- How long a refusal lasts, and for how long it is one for what is out only; zero if it is one for what was
-- used. It must not be remembered for longer than that keeps the request out.
local function lasts(r)
  local kind,s,t=r.kind,r.s,r.t
  if not t or r.retry<=0 then return r.retry,0 end
  local out,slack=all_out(s,t),kind.slack and kind.slack(r) or 0
  local retry=kind.without(r,out)
  if retry==0 then return r.retry,min(r.retry,s[t+2]+s[t+4]>0 and over or over-TERM) end
  if retry<=slack then return r.retry,min(r.retry,2*TERM) end
  -- FAR stands for whatever is longer.
  return retry<FAR and min(r.retry,retry-slack) or r.retry,0
end
-- The same; or that it ends when what is reserved turns out not to count, which may be at any time.
local function refusal(r)
  local retry,loan=lasts(r)
  if r.used and retry>0 and loan==0 and r.kind.judge(r.used,0)==0 then return SOON_AGAIN,0 end
  return retry,loan
end
