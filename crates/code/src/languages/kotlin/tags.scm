[(line_comment) (block_comment)] @doc
(package_header) @package
(import) @import
[(class_declaration) (object_declaration) (object_literal)] @definition.class
(companion_object) @statics
(type_alias) @definition.type
[(function_declaration) (secondary_constructor)] @definition.function
[(class_parameter) (enum_entry)] @definition.field
(property_declaration) @definition.variable
[(call_expression) (constructor_delegation_call) (infix_expression)] @reference.call
(callable_reference) @reference.use
(assignment) @assign
(for_statement) @each
(catch_block) @caught
(return_expression) @return
[(lambda_literal) (anonymous_function) (anonymous_initializer)] @lambda
