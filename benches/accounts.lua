-- For wrk: requests of accounts in turn, with their number as the argument.
local number, accounts = 0, 0

function init(arguments)
  accounts = tonumber(arguments[1])
end

function request()
  number = number % accounts + 1
  wrk.headers["x-account-id"] = string.format("account-%07d", number)
  return wrk.format()
end
