(template_declaration) @definition.template
(namespace_definition) @definition.module
(class_specifier) @definition.class
[(alias_declaration) (concept_definition)] @definition.type
(access_specifier) @access
(using_declaration) @alias
[(new_expression) (compound_literal_expression) (field_initializer)] @reference.call
(lambda_expression) @lambda
(for_range_loop) @each
(catch_clause) @caught
