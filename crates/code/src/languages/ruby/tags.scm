(comment) @doc
(module) @definition.module
(class) @definition.class
[(method) (singleton_method)] @definition.function
(singleton_class) @statics
(alias) @alias
(call) @reference.call
(super) @reference.call
[(assignment) (operator_assignment)] @assign
(for) @each
(rescue) @caught
(return) @return
[(block) (do_block) (lambda)] @lambda
(identifier) @reference.name
