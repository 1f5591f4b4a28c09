-- State: the latest time of Redis, and the lead of the monotonic clock.
local clock=load(KEYS[2],2)
if math.max(clock[1],wall)+clock[2]>=FAR/2 then corrupt,clock[1],clock[2]=corrupt+1,wall,0 end
-- After a small step back it stands still. After a larger one, that would take too long, so it
-- continues.
local back=clock[1]-wall
if back>STILL then clock[2]=clock[2]+back elseif back>0 then wall=clock[1] end
clock[1]=wall
now=wall+clock[2]
