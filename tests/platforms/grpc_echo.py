"""A gRPC server: a stream that returns each message."""

from concurrent.futures import ThreadPoolExecutor

import grpc

echo = grpc.stream_stream_rpc_method_handler(lambda messages, _: messages)
server = grpc.server(ThreadPoolExecutor(100))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("lab.Echo", {"Stream": echo})])
server.add_insecure_port("0.0.0.0:8081")
server.start()
server.wait_for_termination()
