(comment) @doc
(namespace_definition) @package
[(namespace_use_declaration) (require_expression) (require_once_expression) (include_expression)
 (include_once_expression)] @import
[(class_declaration) (trait_declaration) (anonymous_class)] @definition.class
(enum_declaration) @definition.enum
(interface_declaration) @definition.interface
[(function_definition) (method_declaration)] @definition.function
[(property_declaration) (const_declaration) (enum_case)] @definition.field
(use_declaration) @alias
[(function_call_expression) (member_call_expression) (nullsafe_member_call_expression) (scoped_call_expression)
 (object_creation_expression)] @reference.call
(array_creation_expression) @reference.use
[(assignment_expression) (augmented_assignment_expression)] @assign
(foreach_statement) @each
(catch_clause) @caught
[(return_statement) (yield_expression)] @return
[(anonymous_function) (arrow_function)] @lambda
