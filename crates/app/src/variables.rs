//! Every variable the product knows: who reads it, why, and whether it is secret. docs/ENVIRONMENT.md is
//! generated from this list, and a test fails if code names a variable that isn't in it.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableUse {
    Read,
    /// Passed on to commands.
    Inherited,
    /// Set for child processes.
    Told,
}

#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// A trailing `*` matches anything.
    pub name: &'static str,
    /// Who reads it or gets it.
    pub by: &'static str,
    /// How it is used.
    pub usage: VariableUse,
    /// What it is for.
    pub purpose: &'static str,
    /// Secret values never appear in logs, events or prompts.
    pub secret: bool,
    /// Whether a repo's `.env` may set it. A repo must not choose `PATH` or `LD_PRELOAD`.
    pub dotenv: bool,
    /// Whether it decides where something is sent; from a `.env` it then needs approval.
    pub address: bool,
}

const fn variable(
    name: &'static str,
    by: &'static str,
    usage: VariableUse,
    purpose: &'static str,
) -> Variable {
    Variable { name, by, usage, purpose, secret: false, dotenv: false, address: false }
}

impl Variable {
    const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }
    const fn dotenv(self) -> Self {
        Self { dotenv: true, ..self }
    }
    const fn address(self) -> Self {
        Self { dotenv: true, address: true, ..self }
    }
}

#[rustfmt::skip]
pub const VARIABLES: &[Variable] = &[
    variable("HOME", "app, sandbox, core, cli", VariableUse::Read, "the user's files, logins and settings"),
    variable("PATH", "app, sandbox, git, core, cli", VariableUse::Read, "where to find programs"),
    variable("TMPDIR", "git, agents, cli", VariableUse::Read, "folder for temporary files [default: `/tmp`]"),
    variable("USER", "app", VariableUse::Read, "your name in the journal"),
    variable("LOGNAME", "app", VariableUse::Read, "the same, without `USER`"),
    variable("XDG_CONFIG_HOME", "app", VariableUse::Read, "folder of your configuration [default: `~/.config`]"),
    variable("XDG_STATE_HOME", "app", VariableUse::Read, "folder for records, worktrees and clones [default: `~/.local/state`]"),
    variable("CODE_ASSIST_ENDPOINT", "agents", VariableUse::Told, "empty for gemini unless you set it, so that a repo's `.env` can't name a server"),
    variable("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "agents", VariableUse::Told, "an empty list of trusted folders for gemini"),
    variable("OPENCODE_DISABLE_PROJECT_CONFIG", "agents", VariableUse::Told, "keeps opencode from reading the repo's settings"),
    variable("XDG_CACHE_HOME", "app", VariableUse::Read, "tools' caches and virtual environments [default: `~/.cache`]"),
    variable("XDG_DATA_HOME", "app", VariableUse::Read, "tools' data and virtual environments [default: `~/.local/share`]"),
    variable("POETRY_CACHE_DIR", "app", VariableUse::Read, "poetry's virtual environments"),
    variable("POETRY_VIRTUALENVS_PATH", "app", VariableUse::Read, "poetry's virtual environments only"),
    variable("WORKON_HOME", "app", VariableUse::Read, "pipenv's virtual environments"),
    variable("HATCH_DATA_DIR", "app", VariableUse::Read, "hatch's virtual environments"),
    variable("UV_NO_SYNC", "core", VariableUse::Told, "set for checks that use an installed environment, so that uv doesn't change it"),
    variable("XDG_RUNTIME_DIR", "sandbox", VariableUse::Read, "where to look for container engine sockets"),
    variable("CLAUDE_CONTEXT_WINDOW", "hooks", VariableUse::Read, "size of the context window [default: 200000]"),
    variable("CLAUDE_PROJECT_DIR", "hooks", VariableUse::Read, "the project of a `claude` session"),
    variable("GEMINI_PROJECT_DIR", "hooks", VariableUse::Read, "the project of a `gemini` session"),
    variable("CLAUDE_PLUGIN_ROOT", "hooks", VariableUse::Read, "the plugin's folder, read-only for sessions"),
    variable("CLAUDE_PLUGIN_DATA", "hooks", VariableUse::Read, "where plugin hooks remember the alerts of a session"),
    variable("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "hooks", VariableUse::Read, "how often a hook may keep a `claude` session from ending"),
    variable("PWD", "sandbox", VariableUse::Read, "your path to the repo if it contains links; the sandbox has it as well"),
    variable("COLUMNS", "cli", VariableUse::Read, "width of the output"),
    variable("BROWSER", "cli", VariableUse::Read, "the browser for `ralph open`"),
    variable("WAYLAND_DISPLAY", "cli", VariableUse::Read, "a desktop for `ralph open`, like `DISPLAY`"),
    variable("TERM", "cli", VariableUse::Read, "`dumb` turns off color and the live line"),
    variable("NO_COLOR", "cli", VariableUse::Read, "turns color off; `--color` wins"),
    variable("COLORTERM", "tui", VariableUse::Read, "`truecolor` or `24bit` enables true color; sandboxed commands get it as well"),
    variable("COLORFGBG", "tui", VariableUse::Read, "the terminal's background"),
    variable("PAGER", "tui", VariableUse::Read, "pager of the terminal UI [default: `less`]; sandboxed commands get it as well"),
    variable("LESS", "tui", VariableUse::Told, "`-R` for the pager, unless you set it"),
    variable("CLICOLOR_FORCE", "cli", VariableUse::Read, "color even without a terminal; `--color` wins"),
    variable("LC_ALL", "cli", VariableUse::Read, "Unicode signs if it is UTF-8"),
    variable("LC_CTYPE", "cli", VariableUse::Read, "the same, if `LC_ALL` isn't set"),
    variable("LANG", "cli", VariableUse::Read, "the same, if neither of these is set"),
    variable("RALPH_ASCII", "cli", VariableUse::Read, "ASCII signs"),
    variable("RALPH_DEFAULT_PROVIDER", "app", VariableUse::Read, "the default sandbox provider").dotenv(),
    variable("RALPH_DEFAULT_MODEL_PROFILE", "app", VariableUse::Read, "the default model profile").dotenv(),
    variable("RALPH_FALLBACK_MODEL_PROFILE", "app", VariableUse::Read, "the profile to use if the default one fails").dotenv(),
    variable("RALPH_DB_URL", "server", VariableUse::Read, "database of the dashboard index: `postgres://…`, `sqlite:///FILE` (relative), `sqlite:////FILE` (absolute) [default: the server's own file]").secret().address(),
    variable("RALPH_DOTENV_NAMES", "app", VariableUse::Told, "the variables that a server read from its `.env`; the `.env` of a run's repo overrides them"),
    variable("RALPH_ARTIFACTS", "fleet", VariableUse::Read, "the fleet's artifact store: a shared folder, or `s3://bucket/prefix`"),
    variable("RALPH_LEASE_SECONDS", "fleet", VariableUse::Read, "seconds a worker's lease on a run lasts; use the same value in the whole fleet [default: 30]"),
    variable("RALPH_WORKER", "fleet", VariableUse::Read, "the name of this worker"),
    variable("RALPH_WORKER_HOLD", "fleet", VariableUse::Read, "lets a worker recognize the process of a run that it started"),
    variable("RALPH_TRIGGERS", "server", VariableUse::Read, "a file with labels, comments and schedules that start runs"),
    variable("RALPH_WEBHOOK_SECRET", "server", VariableUse::Read, "the secret with which GitHub signs webhooks to `/api/v1/hooks/github`").secret(),
    variable("AWS_ACCESS_KEY_ID", "fleet", VariableUse::Read, "the key of an S3-compatible bucket").secret(),
    variable("AWS_SECRET_ACCESS_KEY", "fleet", VariableUse::Read, "and its secret").secret(),
    variable("AWS_SESSION_TOKEN", "fleet", VariableUse::Read, "and its token, if it has one").secret(),
    variable("AWS_REGION", "fleet", VariableUse::Read, "the region of the bucket"),
    variable("AWS_ENDPOINT_URL", "fleet", VariableUse::Read, "the URL of a service other than Amazon's"),
    variable("RALPH_SERVE_TOKEN", "server", VariableUse::Read, "the owner's token for `ralph serve`; created and stored if unset").secret(),
    variable("RALPH_SERVER_TOKEN", "cli", VariableUse::Read, "the token for the server of `ralph attach --server`").secret(),
    variable("RALPH_SECRETS_KEY", "server", VariableUse::Read, "the key that encrypts secrets from the dashboard, 64 hexadecimal digits [default: a key file]").secret(),
    variable("OTEL_EXPORTER_OTLP_ENDPOINT", "server", VariableUse::Read, "where `ralph serve` sends traces of runs, as OTLP over HTTP"),
    variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "server", VariableUse::Read, "the same, as the complete URL"),
    variable("OTEL_EXPORTER_OTLP_HEADERS", "server", VariableUse::Read, "headers for it: `name=value,name=value`").secret(),
    variable("RALPH_TRUST", "app", VariableUse::Read, "for CI: allows exactly the list with this hash (`ralph trust --show --json` prints it)"),
    variable("RALPH_ISSUE_SHA256", "app", VariableUse::Read, "for CI: SHA-256 of the issue's title, a newline and its text; `ralph run --issue` refuses any other text"),
    variable("RALPH_PROVIDER_SECONDS", "app", VariableUse::Read, "seconds to wait for sandbox providers in `ralph clean` and `ralph sandbox` [default: 60]"),
    variable("RALPH_FAULT", "cli", VariableUse::Read, "tests: die at a named boundary"),
    variable("RALPH_TRACE", "cli", VariableUse::Read, "tests: a file that gets the time of every boundary"),
    variable("HTTP_PROXY", "http", VariableUse::Read, "the proxy for `http://` URLs; sandboxed commands get their own, their only network access"),
    variable("HTTPS_PROXY", "http", VariableUse::Read, "the same for `https://`"),
    variable("ALL_PROXY", "http", VariableUse::Read, "the proxy for both, if the other two aren't set"),
    variable("NO_PROXY", "http", VariableUse::Read, "hosts to reach without a proxy; always includes this machine"),
    variable("http_proxy", "http", VariableUse::Read, "as `HTTP_PROXY`"),
    variable("https_proxy", "http", VariableUse::Read, "as `HTTPS_PROXY`"),
    variable("all_proxy", "http", VariableUse::Read, "as `ALL_PROXY`"),
    variable("no_proxy", "http", VariableUse::Read, "as `NO_PROXY`"),
    variable("GITHUB_TOKEN", "forge", VariableUse::Read, "the token for GitHub").secret().dotenv(),
    variable("GITHUB_PAT", "forge", VariableUse::Read, "the same, under another name").secret().dotenv(),
    variable("GITHUB_APP_ID", "forge", VariableUse::Read, "the GitHub App that acts").dotenv(),
    variable("GITHUB_APP_INSTALLATION_ID", "forge", VariableUse::Read, "its installation").dotenv(),
    variable("GITHUB_APP_PRIVATE_KEY_PEM", "forge", VariableUse::Read, "its key").secret().dotenv(),
    variable("GITHUB_API_URL", "forge", VariableUse::Read, "the API of GitHub Enterprise"),
    variable("GITHUB_GRAPHQL_URL", "forge", VariableUse::Read, "its GraphQL API"),
    variable("GITHUB_SERVER_URL", "forge", VariableUse::Read, "its address"),
    variable("GH_HOST", "forge", VariableUse::Read, "a host that is GitHub Enterprise"),
    variable("SLACK_WEBHOOK_URL", "notify", VariableUse::Read, "the webhook for notifications").secret().address(),
    variable("DAYTONA_API_KEY", "providers", VariableUse::Read, "the key for Daytona").secret().dotenv(),
    variable("DAYTONA_API_URL", "providers", VariableUse::Read, "its API").address(),
    variable("DAYTONA_SERVER_URL", "providers", VariableUse::Read, "the same, under its older name").address(),
    variable("DAYTONA_ORGANIZATION_ID", "providers", VariableUse::Read, "the organization"),
    variable("DAYTONA_TARGET", "providers", VariableUse::Read, "the region"),
    variable("E2B_API_KEY", "providers", VariableUse::Read, "the key for E2B").secret().dotenv(),
    variable("E2B_API_URL", "providers", VariableUse::Read, "its API"),
    variable("E2B_DOMAIN", "providers", VariableUse::Read, "its domain"),
    variable("E2B_SANDBOX_URL", "providers", VariableUse::Read, "the address of its sandboxes"),
    variable("VERCEL_TOKEN", "providers", VariableUse::Read, "the token for Vercel").secret().dotenv(),
    variable("VERCEL_TEAM_ID", "providers", VariableUse::Read, "the team").dotenv(),
    variable("VERCEL_PROJECT_ID", "providers", VariableUse::Read, "the project").dotenv(),
    variable("VERCEL_OIDC_TOKEN", "providers", VariableUse::Read, "a short-lived token instead of the three").secret().dotenv(),
    variable("VERCEL_SANDBOX_API_URL", "providers", VariableUse::Read, "its API"),
    variable("DOCKER_HOST", "sandbox", VariableUse::Read, "the container engine"),
    variable("DOCKER_TLS_VERIFY", "sandbox", VariableUse::Read, "the engine at a `tcp://` address is spoken to over TLS"),
    variable("DOCKER_CERT_PATH", "sandbox", VariableUse::Read, "the folder with its `ca.pem` and our `cert.pem` and `key.pem`; `~/.docker` without it"),
    variable("ANTHROPIC_API_KEY", "agents", VariableUse::Read, "the key for models of Anthropic").secret().dotenv(),
    variable("ANTHROPIC_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("ANTHROPIC_BASE_URL", "agents", VariableUse::Read, "another server for them").address(),
    variable("OPENAI_API_KEY", "agents", VariableUse::Read, "the key for models of OpenAI").secret().dotenv(),
    variable("OPENAI_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("OPENAI_BASE_URL", "agents", VariableUse::Read, "another server for them").address(),
    variable("GEMINI_API_KEY", "agents", VariableUse::Read, "the key for models of Gemini").secret().dotenv(),
    variable("GEMINI_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("GOOGLE_GEMINI_BASE_URL", "agents", VariableUse::Read, "another server for them").address(),
    variable("ZAI_API_KEY", "agents", VariableUse::Read, "the key for models of Z.AI").secret().dotenv(),
    variable("ZAI_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("OPENROUTER_API_KEY", "agents", VariableUse::Read, "the key for models of OpenRouter").secret().dotenv(),
    variable("OPENROUTER_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("DEEPSEEK_API_KEY", "agents", VariableUse::Read, "the key for models of DeepSeek").secret().dotenv(),
    variable("DEEPSEEK_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("MOONSHOT_API_KEY", "agents", VariableUse::Read, "the key for models of Moonshot").secret().dotenv(),
    variable("MOONSHOT_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("DASHSCOPE_API_KEY", "agents", VariableUse::Read, "the key for models of DashScope").secret().dotenv(),
    variable("DASHSCOPE_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("GROQ_API_KEY", "agents", VariableUse::Read, "the key for models of Groq").secret().dotenv(),
    variable("GROQ_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("MISTRAL_API_KEY", "agents", VariableUse::Read, "the key for models of Mistral").secret().dotenv(),
    variable("MISTRAL_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("XAI_API_KEY", "agents", VariableUse::Read, "the key for models of xAI").secret().dotenv(),
    variable("XAI_API_BASE", "agents", VariableUse::Read, "another server for them").address(),
    variable("GOOGLE_API_KEY", "agents", VariableUse::Read, "the same as `GEMINI_API_KEY`").secret().dotenv(),
    variable("LITELLM_PROXY_API_KEY", "agents", VariableUse::Read, "the key for a LiteLLM proxy").secret().dotenv(),
    variable("LITELLM_PROXY_API_BASE", "agents", VariableUse::Read, "its address").address(),
    variable("OLLAMA_API_BASE", "agents", VariableUse::Read, "the address of Ollama").address(),
    variable("ANTHROPIC_AUTH_TOKEN", "agents, sandbox", VariableUse::Read, "a bearer token for Anthropic").secret(),
    variable("ANTHROPIC_MODEL", "sandbox", VariableUse::Inherited, "the model of `claude`; only that program gets it in a sandbox"),
    variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "sandbox", VariableUse::Inherited, "the longest answer that `claude` requests; goes to that program alone in a sandbox"),
    variable("CLAUDE_CODE_MAX_RETRIES", "sandbox", VariableUse::Inherited, "how often `claude` retries a failing server; goes to that program alone in a sandbox"),
    variable("CLAUDE_CODE_OAUTH_TOKEN", "sandbox", VariableUse::Inherited, "a login of `claude`; only that program gets it in a sandbox").secret(),
    variable("CODEX_API_KEY", "sandbox", VariableUse::Inherited, "the key of `codex`; only that program gets it in a sandbox").secret(),
    variable("GOOGLE_CLOUD_PROJECT", "sandbox", VariableUse::Inherited, "the project of `gemini`; only that program gets it in a sandbox"),
    variable("OPENAI_MODEL", "sandbox", VariableUse::Inherited, "the model of `qwen`; only that program gets it in a sandbox"),
    variable("OPENCODE_API_KEY", "sandbox", VariableUse::Inherited, "the key of `opencode`; only that program gets it in a sandbox").secret(),
    variable("OPENCODE_CONFIG_CONTENT", "sandbox", VariableUse::Inherited, "the settings of `opencode`; only that program gets it in a sandbox").secret(),
    variable("OPENCODE_DISABLE_MODELS_FETCH", "sandbox", VariableUse::Inherited, "keeps `opencode` from fetching a list of models; goes to that program alone in a sandbox"),
    variable("OPENCODE_DISABLE_LSP_DOWNLOAD", "sandbox", VariableUse::Inherited, "keeps `opencode` from downloading language servers; goes to that program alone in a sandbox"),
    variable("OPENCODE_DISABLE_DEFAULT_PLUGINS", "sandbox", VariableUse::Inherited, "keeps `opencode` from loading default plugins; only that program gets it in a sandbox"),
    variable("LANGUAGE", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("FORCE_COLOR", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("CI", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("TZ", "app, sandbox", VariableUse::Inherited, "the time zone of displayed times [default: the machine's]; harmless, so commands in a sandbox see it"),
    variable("SHELL", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("JAVA_HOME", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("PYENV_ROOT", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("NVM_DIR", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("VOLTA_HOME", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("RUSTUP_HOME", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("RUSTUP_TOOLCHAIN", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("GOROOT", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("RBENV_ROOT", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("ASDF_DATA_DIR", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("MISE_DATA_DIR", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("DOTNET_ROOT", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("CONDA_PREFIX", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("EDITOR", "sandbox", VariableUse::Inherited, "harmless, so commands in a sandbox see it"),
    variable("LD_LIBRARY_PATH", "sandbox, core", VariableUse::Inherited, "commands in a sandbox and the guard see it"),
    variable("LLVM_PROFILE_FILE", "sandbox", VariableUse::Inherited, "tests: where coverage is written"),
    variable("PYTHONPATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("PYTHONHOME", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("VIRTUAL_ENV", "core, sandbox", VariableUse::Read, "a virtual environment in your home, visible in the sandbox; its workspace paths point to the clean checkout in the final check"),
    variable("NODE_PATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("NODE_OPTIONS", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("LD_PRELOAD", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("DYLD_LIBRARY_PATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("CLASSPATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("RUBYLIB", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("RUBYOPT", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("GEM_PATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("CARGO_HOME", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("YARN_CACHE_FOLDER", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("PIP_CACHE_DIR", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("UV_CACHE_DIR", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("GRADLE_USER_HOME", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("COURSIER_CACHE", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("NUGET_PACKAGES", "sandbox", VariableUse::Read, "where a package manager keeps downloads, which sandboxed commands may read"),
    variable("GEM_HOME", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("BUNDLE_PATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("PERL5LIB", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("GOFLAGS", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("GOPATH", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("BASH_ENV", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("ENV", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("CARGO_TARGET_DIR", "core", VariableUse::Read, "its workspace paths point to the clean checkout in the final check"),
    variable("GIT_CONFIG_GLOBAL", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_CONFIG_SYSTEM", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_CONFIG_NOSYSTEM", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_CONFIG_COUNT", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_EXEC_PATH", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_SSH", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_SSH_COMMAND", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_SSH_VARIANT", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_SSL_CAINFO", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_SSL_CAPATH", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_SSL_NO_VERIFY", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_PROXY_COMMAND", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_ALLOW_PROTOCOL", "git", VariableUse::Inherited, "your connection to a remote; only `git` sees it"),
    variable("GIT_CONFIG_KEY_*", "git", VariableUse::Inherited, "the same, by the beginning of its name"),
    variable("GIT_CONFIG_VALUE_*", "git", VariableUse::Inherited, "the same, by the beginning of its name"),
    variable("GIT_AUTHOR_*", "git", VariableUse::Inherited, "the same, by the beginning of its name"),
    variable("GIT_COMMITTER_*", "git", VariableUse::Inherited, "the same, by the beginning of its name"),
    variable("RALPH_RUN", "commands", VariableUse::Told, "the run that a process belongs to"),
    variable("RALPH_ITERATION", "commands", VariableUse::Told, "the iteration of a session"),
    variable("RALPH_ATTEMPT", "commands", VariableUse::Told, "the try of a session"),
    variable("RALPH_AGENT", "commands", VariableUse::Told, "the agent of a session"),
    variable("RALPH_MODEL", "commands", VariableUse::Told, "the model of a session"),
    variable("RALPH_PROMPT_FILE", "commands", VariableUse::Told, "the file with the prompt of a session"),
    variable("RALPH_VERIFIER", "commands", VariableUse::Told, "the verifier that a check belongs to"),
    variable("RALPH_EXEC", "commands", VariableUse::Told, "the command that a process in a sandbox belongs to"),
    variable("RALPH_NOTIFY_ID", "notification commands", VariableUse::Told, "the id of a notification"),
    variable("RALPH_NOTIFY_OCCASION", "notification commands", VariableUse::Told, "its occasion"),
    variable("RALPH_NOTIFY_RUN", "notification commands", VariableUse::Told, "its run"),
    variable("RALPH_NOTIFY_TITLE", "notification commands", VariableUse::Told, "the title of the task"),
    variable("RALPH_NOTIFY_HEADING", "notification commands", VariableUse::Told, "its heading"),
    variable("RALPH_NOTIFY_TEXT", "notification commands", VariableUse::Told, "its text"),
    variable("RALPH_NOTIFY_HINT", "notification commands", VariableUse::Told, "what to do"),
    variable("RALPH_NOTIFY_PR_URL", "notification commands", VariableUse::Told, "the pull request"),
    variable("RALPH_GIT_USER", "git", VariableUse::Told, "the login for a remote, for git's own helper").secret(),
    variable("RALPH_GIT_PASSWORD", "git", VariableUse::Told, "its password").secret(),
    variable("GIT_AUTHOR_NAME", "git", VariableUse::Told, "who makes a commit"),
    variable("GIT_AUTHOR_EMAIL", "git", VariableUse::Told, "their address"),
    variable("GIT_COMMITTER_NAME", "git", VariableUse::Told, "who records it"),
    variable("GIT_COMMITTER_EMAIL", "git", VariableUse::Told, "their address"),
    variable("GIT_INDEX_FILE", "git", VariableUse::Told, "an index of the run's own"),
    variable("GIT_OBJECT_DIRECTORY", "git", VariableUse::Told, "where new objects go"),
    variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", "git", VariableUse::Told, "where the objects of a submodule are"),
    variable("GIT_ATTR_SOURCE", "git", VariableUse::Told, "whose attributes decide about filters"),
    variable("GIT_ATTR_NOSYSTEM", "git", VariableUse::Told, "attributes of the system don't count"),
    variable("GIT_COMMON_DIR", "git", VariableUse::Told, "settings of the engine in place of the repo's"),
    variable("GIT_NO_LAZY_FETCH", "git", VariableUse::Told, "git on a tree reaches no network"),
    variable("GIT_ASKPASS", "git", VariableUse::Told, "git never asks"),
    variable("SSH_ASKPASS", "git", VariableUse::Told, "git never asks"),
    variable("SSH_ASKPASS_REQUIRE", "git", VariableUse::Told, "git never asks"),
    variable("GCM_INTERACTIVE", "git", VariableUse::Told, "git never asks"),
    variable("GIT_TERMINAL_PROMPT", "git", VariableUse::Told, "git never asks"),
    variable("GIT_OPTIONAL_LOCKS", "git", VariableUse::Told, "the user's index is not touched"),
    variable("GIT_NO_REPLACE_OBJECTS", "git", VariableUse::Told, "objects are what they are"),
    variable("GIT_LITERAL_PATHSPECS", "git", VariableUse::Told, "patterns work"),
    variable("NODE_USE_ENV_PROXY", "sandboxed commands", VariableUse::Told, "Node takes the proxy, too"),
    variable("YARN_HTTP_PROXY", "sandboxed commands", VariableUse::Told, "yarn takes the proxy"),
    variable("YARN_HTTPS_PROXY", "sandboxed commands", VariableUse::Told, "yarn takes the proxy"),
    variable("MAVEN_OPTS", "sandboxed commands", VariableUse::Told, "Maven takes the proxy"),
    variable("GRADLE_OPTS", "sandboxed commands", VariableUse::Told, "Gradle takes the proxy"),
    variable("GIT_DISCOVERY_ACROSS_FILESYSTEM", "sandboxed commands", VariableUse::Told, "git finds its folder in a sandbox"),
    variable("GEMINI_CLI_HOME", "agents", VariableUse::Told, "a folder of settings with the guard in them, for sessions of `gemini` without a sandbox"),
    variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "agents", VariableUse::Told, "`claude` sends nothing but its work"),
    variable("QWEN_CODE_SYSTEM_SETTINGS_PATH", "agents", VariableUse::Told, "the hooks of a session of `qwen`, unless it is set"),
    variable("GEMINI_CLI_NO_RELAUNCH", "agents", VariableUse::Told, "`gemini` stays one process"),
    variable("QWEN_CODE_NO_RELAUNCH", "agents", VariableUse::Told, "`qwen` stays one process"),
    variable("OPENCODE_DISABLE_AUTOUPDATE", "agents", VariableUse::Told, "`opencode` stays as it is"),
    variable("IS_SANDBOX", "agents", VariableUse::Told, "an agent may act without asking, as root, too"),
];

/// Whether the list has this name.
pub fn is_known(name: &str) -> bool {
    VARIABLES.iter().any(|known| match known.name.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => known.name == name,
    })
}

/// A variable that a repo's `.env` may set.
pub fn of_dotenv(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|known| known.dotenv && known.name == name)
}

/// The list as a documentation page.
pub fn markdown() -> String {
    let mut page = String::from(
        "<!-- Made by scripts/generate from crates/app/src/variables.rs. Edit that list, not this file. -->\n\n\
         # Environment variables\n\n\
         These variables configure `ralph`. It reads them once, when it starts. A `.env` at the top of the repo adds those marked \
         in the last column for one run and never overrides your environment; [`.env.example`](../.env.example) is a start. \
         `ralph serve` and `ralph index` read the `.env` in their folder; runs that the server starts get these values unless \
         their repo's `.env` has others. Variables marked `trust`, and keys in a tracked `.env`, count only once you have \
         allowed them (`ralph trust`). Secrets never appear in logs, events or prompts.\n",
    );
    let sections = [
        (VariableUse::Read, "Read", "read by"),
        (VariableUse::Inherited, "Handed on to commands", "handed on by"),
        (VariableUse::Told, "Set for processes that ralph starts", "for"),
    ];
    for (usage, title, by) in sections {
        page.push_str(&format!(
            "\n## {title}\n\n| variable | purpose | {by} | secret | `.env` |\n|---|---|---|---|---|\n"
        ));
        for known in VARIABLES.iter().filter(|known| known.usage == usage) {
            let mark = |yes: bool| if yes { "yes" } else { "" };
            let Variable { name, purpose, by, .. } = known;
            let (secret, dotenv) =
                (mark(known.secret), if known.address { "trust" } else { mark(known.dotenv) });
            page.push_str(&format!("| `{name}` | {purpose} | {by} | {secret} | {dotenv} |\n"));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_variable_is_listed_twice() {
        let names: BTreeSet<&str> = VARIABLES.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), VARIABLES.len());
    }

    #[test]
    fn names_that_look_like_secrets_are_secrets() {
        use ralph_loop_domain::secret_name::is_secret_name;
        for known in VARIABLES.iter().filter(|known| is_secret_name(known.name)) {
            assert!(known.secret, "{}", known.name);
        }
        // The name-based redactor must know every secret.
        let unknown =
            |known: &&Variable| known.secret && !is_secret_name(known.name) && !known.name.ends_with('*');
        let unknown: Vec<&str> = VARIABLES.iter().filter(unknown).map(|known| known.name).collect();
        assert_eq!(
            unknown,
            ["OTEL_EXPORTER_OTLP_HEADERS", "OPENCODE_CONFIG_CONTENT", "RALPH_GIT_USER"],
            "known by what is in them"
        );
    }

    #[test]
    fn the_documentation_is_made_from_the_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ENVIRONMENT.md");
        assert!(std::fs::read_to_string(path).unwrap() == markdown(), "run scripts/generate");
    }
}
