//! Tests of redaction: what is replaced, what is kept, and properties of any text.

use super::{GONE, redact, redact_counted};
use proptest::prelude::*;
use std::borrow::Cow;

/// Texts with a secret, and the expected result.
const GO: &[(&str, &str)] = &[
    // Assignments of literals.
    ("password = \"HIDDEN\"", "password = \"[redacted]\""),
    ("PASSWORD: str = 'HIDDEN'", "PASSWORD: str = '[redacted]'"),
    ("def f(user, password=\"HIDDEN\"): pass", "def f(user, password=\"[redacted]\"): pass"),
    ("const apiKey: string = `HIDDEN`;", "const apiKey: string = `[redacted]`;"),
    ("{\"api_key\": \"HIDDEN\"}", "{\"api_key\": \"[redacted]\"}"),
    ("\"{\\\"password\\\": \\\"HIDDEN\\\"}\"", "\"{\\\"password\\\": \\\"[redacted]\\\"}\""),
    ("config['secret_key'] = 'HIDDEN'", "config['secret_key'] = '[redacted]'"),
    ("let token := \"HIDDEN\"", "let token := \"[redacted]\""),
    ("client.setPassword(\"HIDDEN\")", "client.setPassword(\"[redacted]\")"),
    ("os.environ.get(\"DB_PASSWORD\", \"HIDDEN\")", "os.environ.get(\"DB_PASSWORD\", \"[redacted]\")"),
    ("static DB_TOKEN: &str = \"HIDDEN\";", "static DB_TOKEN: &str = \"[redacted]\";"),
    ("if password == \"HIDDEN\" {", "if password == \"[redacted]\" {"),
    ("x-api-key: 'HIDDEN'", "x-api-key: '[redacted]'"),
    ("password = \"HIDDEN and cut off", "password = \"[redacted]"),
    // Without quotes: prose, notes, settings.
    ("password=hunter2hunter2", "password=[redacted]"),
    ("log in with password=hunter2hunter2, then go on", "log in with password=[redacted], then go on"),
    ("PASSWORD: swordfish99", "PASSWORD: [redacted]"),
    ("The password: swordfish99.", "The password: [redacted]."),
    ("secret=abcdef0123456789", "secret=[redacted]"),
    ("client_secret: QWERTYUIOPASDFGH", "client_secret: [redacted]"),
    ("clientSecret: QWERTY1234asdf", "clientSecret: [redacted]"),
    ("client-secret = aB3dE6gH9", "client-secret = [redacted]"),
    ("api_key=9f8e7d6c5b4a", "api_key=[redacted]"),
    ("our api key: 9f8e7d6c5b4a", "our api key: [redacted]"),
    ("token: abc123def456", "token: [redacted]"),
    ("access_token=abc123def456&state=x", "access_token=[redacted]&state=x"),
    ("the staging token is abc123def456 until May", "the staging token is [redacted] until May"),
    ("pwd: Tr0ub4dor&3", "pwd: [redacted]"),
    ("password: p@sswOrd", "password: [redacted]"),
    ("password: 48151623", "password: [redacted]"),
    ("secret = kqzXbWvRtYpLmNsD", "secret = [redacted]"),
    ("passphrase: Summer2026!", "passphrase: [redacted]"),
    ("password1: hunter2hunter2", "password1: [redacted]"),
    ("password: token: abc123def456", "password: token: [redacted]"),
    ("password: hunter2hunter2 and password: swordfish99", "password: [redacted] and password: [redacted]"),
    ("spring.datasource.password=hunter2hunter2", "spring.datasource.password=[redacted]"),
    // Shells, headers and addresses.
    ("export AWS_SECRET_ACCESS_KEY=HIDDEN", "export AWS_SECRET_ACCESS_KEY=[redacted]"),
    ("DB_PASSWORD=letmein ./run", "DB_PASSWORD=[redacted] ./run"),
    ("mysql --password hunter2hunter2 shop", "mysql --password [redacted] shop"),
    ("lukasa --api-key=9f8e7d6c5b4a", "lukasa --api-key=[redacted]"),
    ("curl -u ann:letmein https://x.org", "curl -u ann:[redacted] https://x.org"),
    ("machine x.org login ann password letmein", "machine x.org login ann password [redacted]"),
    ("Authorization: Token letmein", "Authorization: Token [redacted]"),
    ("headers = {'Authorization': 'Bearer HIDDENHIDDENHIDDEN12'}", "headers = {'Authorization': 'Bearer [redacted]'}"),
    ("GET /v1?user=ann&token=letmein&x=1", "GET /v1?user=ann&token=[redacted]&x=1"),
    (
        "connect(\"postgres://ann:HIDDEN@db.example.org/shop\")",
        "connect(\"postgres://ann:[redacted]@db.example.org/shop\")",
    ),
    // Connection strings.
    ("host=db user=ann password=letmein dbname=shop", "host=db user=ann password=[redacted] dbname=shop"),
    ("password=letmein host=db", "password=[redacted] host=db"),
    (
        "Server=db;Database=shop;User Id=ann;Password=letmein;",
        "Server=db;Database=shop;User Id=ann;Password=[redacted];",
    ),
    ("jdbc:mysql://db/shop?user=ann&password=letmein", "jdbc:mysql://db/shop?user=ann&password=[redacted]"),
    ("AccountName=shop;AccountKey=aGVsbG8gd29ybGQ1Nzg5MDEy==;", "AccountName=shop;AccountKey=[redacted];"),
    // Shapes that need no name.
    ("x = 'sk-HIDDENHIDDENHIDDENHIDDEN'", "x = '[redacted]'"),
    ("x = 'ghp_HIDDENHIDDENHIDDENHIDDENHIDDEN'", "x = '[redacted]'"),
    ("key = \"AKIAHIDDENHIDDEN0000\"", "key = \"[redacted]\""),
    ("curl -H x-api-key:lk_0123456789abcdef_HIDDENHIDDEN-HIDDEN_HIDDEN", "curl -H x-api-key:[redacted]"),
    ("sent lk_0123456789abcdef_HIDDENHIDDEN-HIDDEN_HIDDEN", "sent lk_0123456789abcdef_[redacted]"),
    ("t = \"eyJhbGciOiJIUzI1NiJ9.eyJHIDDENHIDDEN.HIDDEN\"", "t = \"[redacted]\""),
    (
        "PEM = \"\"\"-----BEGIN RSA PRIVATE KEY-----\nHIDDEN\n-----END RSA PRIVATE KEY-----\"\"\"",
        "PEM = \"\"\"[redacted]\"\"\"",
    ),
    ("-----BEGIN PRIVATE KEY-----\nHIDDEN and cut off", "[redacted]"),
    ("salt = \"aHIDDEN93kLmQ82xTzR41pWvB7nYc\"", "salt = \"[redacted]\""),
    ("seed = '0123456789abcdef0123456789abcdef'", "seed = '[redacted]'"),
];

/// Texts about secrets that contain none.
const STAY: &[&str] = &[
    // Calls, names, types.
    "password = get_password()",
    "let password = read_password(prompt)?;",
    "token = self.next()",
    "token = lexer.tokens[12]",
    "token: str",
    "def login(user: str, password: str) -> Token:",
    "password: String,",
    "pub token: Option<String>,",
    "secret: [u8; 32]",
    "secret: Vec<u8>",
    "token: u64",
    "token: uint256",
    "token: Token",
    "password=password",
    "connect(host=host, user=user, password=password)",
    "connect(host=h, user=u, password=pwd)",
    "password1 = self.cleaned_data.get(\"password1\")",
    "if password != password2:",
    "user.set_password(password=new_password2)",
    "api_key = config.api_key",
    "token = Token::Ident",
    "token == other",
    "{ token: token, secret: this.secret }",
    "secretKey: process.env.SECRET_KEY,",
    "api_key: &str,",
    "fn secret_santa(people: &[Person]) -> Pairs {",
    "def tokenize(text):\n    return text.split(' ')",
    "import { something } from './components/TokenList.vue'",
    "tokenizer = cl100k_base",
    "max_tokens: 4096",
    "MAX_TOKENS=4096",
    "token = 258",
    "#define TOKEN 258",
    "token_type: bearer2026",
    "password_hash = sha256_hex",
    // Placeholders.
    "password: ${DB_PASSWORD}",
    "password = \"${DB_PASSWORD}\"",
    "DB_PASSWORD=$PASSWORD",
    "DB_PASSWORD=$(cat /run/secrets/db)",
    "password=<password>",
    "token: {{ token }}",
    "password: ********",
    "token=%s",
    "--token <TOKEN>",
    "password: null",
    "POSTGRES_PASSWORD_FILE=/run/secrets/db_password1",
    // Sentences.
    "raise ValueError(\"the password is too short\")",
    "The password: see the wiki.",
    "a secret: nobody reads it",
    "the token is a 256-bit number",
    "the token is base64url-encoded",
    "the secret is hashed with SHA-256",
    "password is at least 12 characters",
    "Tokens last an hour; the token is valid until 2026-11-18.",
    "api key: see docs/keys2/README.md",
    "the password is required, the secret is optional",
    // Nothing of the kind.
    "url = \"https://example.org/a/long/path/to/some/page.html\"",
    "const NAME: &str = \"a_rather_long_name_of_some_setting\";",
    "password: [redacted]",
    "password = \"[redacted]\"",
];

#[test]
fn secrets_are_replaced_and_nothing_else() {
    let wrong: Vec<_> =
        GO.iter().filter(|(text, left)| redact(text) != *left).map(|(text, _)| (text, redact(text))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn code_and_prose_are_kept() {
    let wrong: Vec<_> =
        STAY.iter().filter(|text| !matches!(redact(text), Cow::Borrowed(_))).map(|text| redact(text)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_secret_counts_once() {
    for (text, gone) in [
        ("nothing to see", 0),
        ("password = \"hidden\"", 1),
        ("token = 'sk-HIDDENHIDDENHIDDENHIDDEN'", 1),
        ("a [redacted] one and API_TOKEN=hidden then\npassword: 'x'", 2),
        ("password=hunter2hunter2 and PASSWORD: swordfish99", 2),
    ] {
        assert_eq!(redact_counted(text).1, gone, "{text}");
    }
}

/// Texts made of what the rules match, in any order, mixed with other text.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        4 => prop::sample::select(
            [
                "password", "token", "client_secret", "api key", "PASSWORD", "DB_TOKEN", "host", "user", "=", ":", " = ", ": ",
                "\"", "'", "`", "\\\"", "(", ")", ",", ";", " ", "\n", "&", "?", "://", "@", "--", " is ", "hunter2hunter2",
                "swordfish99", "[redacted]", "${X}", "Bearer ", "sk-0123456789abcdefghij", "eyJhbGciOiJ9.eyJzdWIiOiJ9.x",
                "-----BEGIN PRIVATE KEY-----", "get()", "str", "é",
            ]
            .as_slice()
        )
        .prop_map(str::to_owned),
        1 => "[ -~é]{0,8}",
    ];
    prop::collection::vec(parts, 0..16).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn redacting_twice_changes_nothing_and_only_adds_marks(text in texts()) {
        let once = redact(&text).into_owned();
        prop_assert!(matches!(redact(&once), Cow::Borrowed(_)), "{once:?} becomes {:?}", redact(&once));
        prop_assert!(once.len() <= text.len() * GONE.len());
        let kept = once.replace(GONE, "");
        prop_assert!(kept.len() <= text.len(), "only marks are added");
        let mut rest = text.chars();
        prop_assert!(kept.chars().all(|own| rest.any(|c| c == own)), "what is kept is kept in its order: {once:?}");
    }

    #[test]
    fn a_secret_is_found_whatever_stands_around_it(before in "[a-z .\n]{0,20}", after in "[ \n][a-z .]{0,20}") {
        for secret in ["password=hunter2hunter2", "PASSWORD: swordfish99", "client_secret: QWERTY1234asdf"] {
            let text = format!("{before} {secret}{after}");
            let value = secret.rsplit(['=', ' ']).next().unwrap_or_default();
            prop_assert!(!redact(&text).contains(value), "{text}");
        }
    }
}
