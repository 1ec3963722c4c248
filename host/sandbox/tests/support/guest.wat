;; A plugin that does nothing, with holes (`{{…}}`) that a test fills.
(module
  {{imports}}
  (import "[export]slackline:plugin/update@0.1.0" "[resource-new]program" (func $new-program (param i32) (result i32)))
  (import "slackline:plugin/input@0.1.0" "[resource-drop]batch" (func $drop-batch (param i32)))

  (memory (export "memory") 4)
  ;; 1024: what `describe` and `plan` answer. 64..96: results; zeros mean success.
  (data (i32.const 1024) "{{manifest}}")
  (data (i32.const 32768) "{{plan}}")
  {{data}}

  ;; Lists from the host land here; each call starts over.
  (global $heap (mut i32) (i32.const 65536))
  (func $realloc (export "cabi_realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32) (local $end i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
    (local.set $end (i32.add (local.get $at) (local.get $size)))
    (block $enough
      (loop $more
        (br_if $enough (i32.ge_u (i32.mul (memory.size) (i32.const 65536)) (local.get $end)))
        (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
        (br $more)))
    (global.set $heap (local.get $end))
    (local.get $at))

  ;; Clears the result area and answers its place.
  (func $ok (result i32)
    (memory.fill (i32.const 64) (i32.const 0) (i32.const 32))
    (i32.const 64))
  (func $fresh (global.set $heap (i32.const 65536)))

  {{functions}}

  (func (export "slackline:plugin/about@0.1.0#describe") (result i32)
    {{describe}}
    (i32.store (i32.const 64) (i32.const 1024))
    (i32.store (i32.const 68) (i32.const {{manifest-len}}))
    (i32.const 64))

  (func (export "slackline:plugin/about@0.1.0#plan") (param i32 i32 i32 i32) (result i32)
    (drop (call $ok))
    (i32.store (i32.const 68) (i32.const 32768))
    (i32.store (i32.const 72) (i32.const {{plan-len}}))
    (i32.const 64))

  (func (export "slackline:plugin/update@0.1.0#[static]program.create") (param $params i32) (param $len i32) (result i32)
    {{create}}
    (drop (call $ok))
    (i32.store (i32.const 68) (call $new-program (i32.const 7)))
    (i32.const 64))

  (func (export "slackline:plugin/update@0.1.0#restore")
    (param i32 i32) (param $state i32) (param $state-len i32) (param i32 i32) (result i32)
    {{restore}}
    (drop (call $ok))
    (i32.store (i32.const 68) (call $new-program (i32.const 7)))
    (i32.const 64))

  (func (export "slackline:plugin/update@0.1.0#[method]program.prepare") (param $self i32) (param $batch i32) (result i32)
    (call $drop-batch (local.get $batch))
    (call $ok))

  (func $step (export "slackline:plugin/update@0.1.0#[method]program.step") (param $self i32) (param $batch i32) {{step-params}} (result i32)
    (local $i i32) (local $n i64)
    (call $fresh)
    {{step}}
    (call $drop-batch (local.get $batch))
    (call $ok))

  (func (export "slackline:plugin/update@0.1.0#[method]program.end-clock") (param $self i32) (param $clock i32) (result i32)
    {{end-clock}}
    (call $ok))

  (func (export "slackline:plugin/update@0.1.0#[method]program.evaluate") (param $self i32) (param $batch i32) (result i32)
    (call $fresh)
    {{evaluate}}
    (call $drop-batch (local.get $batch))
    (call $ok))

  (func (export "slackline:plugin/update@0.1.0#[method]program.predict") (param $self i32) (param $batch i32) (result i32)
    (call $fresh)
    {{predict}}
    (call $drop-batch (local.get $batch))
    (call $ok))

  (func (export "slackline:plugin/update@0.1.0#[method]program.save") (param $self i32) (result i32)
    (drop (call $ok))
    {{save}}
    (i32.const 64)))
