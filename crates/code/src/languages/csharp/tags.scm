(comment) @doc
(using_directive) @import
[(namespace_declaration) (file_scoped_namespace_declaration)] @package
(class_declaration) @definition.class
[(struct_declaration) (record_declaration)] @definition.struct
(enum_declaration) @definition.enum
(interface_declaration) @definition.interface
(delegate_declaration) @definition.type
[(method_declaration) (constructor_declaration) (destructor_declaration) (operator_declaration)
 (conversion_operator_declaration) (indexer_declaration) (local_function_statement)] @definition.function
[(field_declaration) (event_field_declaration) (property_declaration) (event_declaration)
 (enum_member_declaration)] @definition.field
[(variable_declaration) (declaration_pattern) (declaration_expression)] @definition.variable
[(invocation_expression) (object_creation_expression) (implicit_object_creation_expression)
 (constructor_initializer)] @reference.call
(initializer_expression) @reference.use
(assignment_expression) @assign
(foreach_statement) @each
(catch_declaration) @caught
[(return_statement) (yield_statement)] @return
[(lambda_expression) (anonymous_method_expression)] @lambda
(global_statement) @entry
