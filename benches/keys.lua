-- Takes turns between as many accounts as the argument specifies. The requests are prepared in
-- advance, so that the generator needs as little time as for a constant request.
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
