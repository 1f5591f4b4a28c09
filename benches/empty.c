// A dynamic module of Envoy that does nothing: the cost of its hooks, with a small allocation for each stream.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const char *ptr;
  size_t len;
} buf;

#define ON(name) envoy_dynamic_module_on_##name
#define HTTP(name) ON(http_filter_##name)

const char *ON(program_init)(void) { return "v0.2.0"; }
void *HTTP(config_new)(void *envoy, buf name, buf config) { return malloc(1); }
void HTTP(config_destroy)(void *config) { free(config); }
void *HTTP(new)(void *config, void *envoy) { return malloc(64); }
void HTTP(destroy)(void *filter) { free(filter); }
uint32_t HTTP(request_headers)(void *envoy, void *filter, bool end) { return 0; }
uint32_t HTTP(request_body)(void *envoy, void *filter, bool end) { return 0; }
uint32_t HTTP(request_trailers)(void *envoy, void *filter) { return 0; }
uint32_t HTTP(response_headers)(void *envoy, void *filter, bool end) { return 0; }
uint32_t HTTP(response_body)(void *envoy, void *filter, bool end) { return 0; }
uint32_t HTTP(response_trailers)(void *envoy, void *filter) { return 0; }
void HTTP(stream_complete)(void *envoy, void *filter) {}
void HTTP(scheduled)(void *envoy, void *filter, uint64_t event) {}
void HTTP(http_callout_done)(void *envoy, void *filter, uint64_t id, int result, void *headers, size_t count, void *body, size_t chunks) {}
void HTTP(http_stream_headers)(void *envoy, void *filter, uint64_t id, void *headers, size_t count, bool end) {}
void HTTP(http_stream_data)(void *envoy, void *filter, uint64_t id, const void *data, size_t count, bool end) {}
void HTTP(http_stream_trailers)(void *envoy, void *filter, uint64_t id, void *trailers, size_t count) {}
void HTTP(http_stream_complete)(void *envoy, void *filter, uint64_t id) {}
void HTTP(http_stream_reset)(void *envoy, void *filter, uint64_t id, int reason) {}
void HTTP(downstream_above_write_buffer_high_watermark)(void *envoy, void *filter) {}
void HTTP(downstream_below_write_buffer_low_watermark)(void *envoy, void *filter) {}
