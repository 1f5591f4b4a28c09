"""A rate limit service that admits every request, for Envoy's filter `ratelimit`. It prints its port."""

from concurrent.futures import ThreadPoolExecutor

import grpc

# A `RateLimitResponse` with `overall_code: OK`.
OK = b"\x08\x01"

admit = grpc.unary_unary_rpc_method_handler(lambda request, _: OK)
server = grpc.server(ThreadPoolExecutor(4))
methods = {"ShouldRateLimit": admit}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("envoy.service.ratelimit.v3.RateLimitService", methods)])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
