-- For wrk: requests of 10,000 accounts in turn.
local number = 0

function request()
  number = number % 10000 + 1
  wrk.headers["x-account-id"] = string.format("account-%06d", number)
  return wrk.format()
end
