(comment) @doc
(preproc_include) @import
[(preproc_def) (preproc_function_def)] @definition.field
[(struct_specifier) (union_specifier)] @definition.struct
(enum_specifier) @definition.enum
(enumerator) @definition.field
(type_definition) @definition.type
(function_definition) @definition.function
[(declaration) (field_declaration)] @definition.variable
(call_expression) @reference.call
(initializer_list) @reference.use
(assignment_expression) @assign
(return_statement) @return
