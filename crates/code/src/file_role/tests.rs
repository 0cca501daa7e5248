//! Roles of files by their paths.

use super::*;

#[test]
fn roles_follow_paths() {
    use FileRole::*;
    for (path, is_source, role) in [
        ("src/main.rs", true, Source),
        ("django/test/client.py", true, Test),
        ("a/test_price.py", true, Test),
        ("a/price_test.go", true, Test),
        ("src/PriceTest.java", true, Test),
        ("src/Contest.java", true, Source),
        ("src/latest.py", true, Source),
        ("web/price.spec.ts", true, Test),
        ("examples/basic/main.go", true, Example),
        ("benches/read.rs", true, Example),
        ("docs/conf.py", true, Documentation),
        ("README.md", false, Documentation),
        ("CHANGES.rst", false, Documentation),
        ("conf/locale/de/LC_MESSAGES/django.po", false, Translation),
        ("i18n/de.json", false, Translation),
        ("src/lang/parser.rs", true, Source),
        ("package.json", false, Configuration),
        (".github/workflows/ci.yml", false, Configuration),
        ("Dockerfile", false, Configuration),
        ("api/v1/user.pb.go", true, Generated),
        ("vendor/x/y.go", true, Generated),
        ("certificate/cert.pem", false, Data),
    ] {
        assert_eq!(FileRole::of(path, is_source), role, "{path}");
    }
}
