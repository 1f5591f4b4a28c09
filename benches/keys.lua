-- Cycles over as many accounts as the argument says. The requests are made beforehand, so that a run costs the
-- generator as little as a constant request does.
local requests = {}
local i = 0

function init(args)
  for n = 1, tonumber(args[1]) do
    wrk.headers["x-account-id"] = string.format("account-%06d", n)
    requests[n] = wrk.format()
  end
end

function request()
  i = i % #requests + 1
  return requests[i]
end
