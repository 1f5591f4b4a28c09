(import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
(import "env" "proxy_get_log_level" (func $get_log_level (param i32) (result i32)))
(import "env" "proxy_set_effective_context" (func $effective (param i32) (result i32)))
(import "env" "proxy_continue_stream" (func $continue (param i32) (result i32)))
(import "env" "proxy_send_local_response"
  (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
(import "env" "proxy_set_tick_period_milliseconds" (func $tick_period (param i32) (result i32)))
(import "env" "proxy_get_header_map_value"
  (func $header (param i32 i32 i32 i32 i32) (result i32)))
(import "env" "proxy_get_property" (func $property (param i32 i32 i32 i32) (result i32)))
(import "env" "proxy_define_metric" (func $define (param i32 i32 i32 i32) (result i32)))
(import "env" "proxy_increment_metric" (func $increment (param i32 i64) (result i32)))
(import "env" "proxy_get_shared_data"
  (func $get_shared (param i32 i32 i32 i32 i32) (result i32)))
(import "env" "proxy_set_shared_data"
  (func $set_shared (param i32 i32 i32 i32 i32) (result i32)))
(import "env" "proxy_http_call"
  (func $http_call (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
(import "env" "proxy_get_status" (func $get_status (param i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "clock_time_get"
  (func $clock (param i32 i64 i32) (result i32)))
(import "wasi_snapshot_preview1" "environ_sizes_get"
  (func $environ_sizes (param i32 i32) (result i32)))
(memory (export "memory") 1)
(global $free (mut i32) (i32.const 8192))
(func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
  (global.get $free)
  (global.set $free (i32.add (global.get $free) (local.get $size))))
;; Logs a number as two digits.
(func $say (param $number i32)
  (i32.store8 (i32.const 0) (i32.add (i32.const 48) (i32.div_u (local.get $number) (i32.const 10))))
  (i32.store8 (i32.const 1) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
  (drop (call $log (i32.const 2) (i32.const 0) (i32.const 2))))
;; Where results go: an address at 16, a size at 20.
(func $say_result
  (drop (call $log (i32.const 2) (i32.load (i32.const 16)) (i32.load (i32.const 20)))))
(data (i32.const 64) "x-key")
(data (i32.const 80) "request\00headers\00x-key")
(data (i32.const 112) "upstream")
(data (i32.const 128) "\03\00\00\00"
  "\07\00\00\00\03\00\00\00" "\05\00\00\00\01\00\00\00" "\0a\00\00\00\01\00\00\00"
  ":method\00GET\00" ":path\00/\00" ":authority\00a\00")
