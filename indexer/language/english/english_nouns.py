"""English nouns of facts: data alone."""

from indexer.language.fact_tables import Nouns

ENGLISH_NOUNS = Nouns(
    former=(r"^(?:the |our |my )?(?:old|previous|former|original|initial|first|next|last|other|another|alternative)\b"),
    new=(r"^(?:the |our |my )?(?:new|latest|updated)\b"),
    definite=(r"^(?:the|our|my|your|his|her|their|its)\b|['’]s?\s|\bof\b"),
    me=frozenset("i me mine my user".split()),
    attributes={
        "location": ("location", "city", "residence"),
        "employer": ("employer", "workplace"),
        "owner": ("owner", "ownership", "dri", "code owner"),
        "maintainer": ("maintainer",),
        "lead": ("lead", "leader", "team lead", "tech lead"),
        "manager": ("manager", "boss", "supervisor"),
        "assignee": ("assignee", "reviewer"),
        "oncall": ("on-call", "oncall"),
        "ceo": ("ceo", "chief executive"),
        "cto": ("cto",),
        "cfo": ("cfo",),
        "captain": ("captain",),
        "price": ("price", "cost", "fee", "pricing", "rent"),
        "salary": ("salary", "wage"),
        "deadline": ("deadline", "due date", "cutoff", "cut-off"),
        "day": ("date", "day"),
        "time": ("time", "start time"),
        "status": ("status", "state", "phase", "stage"),
        "version": ("version",),
        "port": ("port",),
        "phone": (
            "phone",
            "phone number",
            "telephone",
            "telephone number",
            "tel",
            "cell",
            "cell phone",
            "mobile",
            "mobile number",
            "number",
        ),
        "email": ("email", "e-mail", "mail", "email address", "e-mail address"),
        "address": ("address",),
        "name": ("name", "nickname", "username", "handle", "codename", "code name"),
        "password": ("password", "passcode", "passphrase", "pin"),
        "url": ("url", "website", "site", "domain", "endpoint", "base url"),
        "host": ("host", "hostname", "ip", "ip address", "server"),
        "region": ("region", "zone"),
        "timezone": ("timezone", "time zone", "tz"),
        "database": ("database", "db"),
        "cache": ("cache",),
        "queue": ("queue", "message queue", "broker", "message broker"),
        "framework": ("framework",),
        "target": ("target",),
        "environment": ("environment", "env"),
        "branch": ("branch",),
        "editor": ("editor", "ide"),
        "browser": ("browser",),
        "os": ("os", "operating system"),
        "shell": ("shell",),
        "theme": ("theme",),
        "font": ("font",),
        "package manager": ("package manager",),
        "formatter": ("formatter",),
        "linter": ("linter",),
        "model": ("model",),
        "provider": ("provider", "host provider", "hosting", "hosting provider"),
        "runtime": ("runtime",),
        "ci": ("ci", "ci system"),
        "license": ("license", "licence"),
        "budget": ("budget",),
        "limit": ("limit", "quota", "rate limit"),
        "timeout": ("timeout",),
        "threshold": ("threshold",),
        "interval": ("interval", "frequency"),
        "rate": ("rate", "interest rate"),
        "contact": ("contact", "point of contact"),
        "method": ("payment method",),
        "language": ("language preference", "preferred language"),
        "pronouns": ("pronouns",),
        "landlord": ("landlord", "landlady"),
        "length": ("length", "duration"),
        "size": ("size",),
        "headcount": ("headcount", "team size"),
        "capacity": ("capacity",),
        "priority": ("priority", "severity"),
        "role": ("role", "position", "job", "job title", "title"),
        "department": ("department",),
        "school": ("school", "university", "college"),
        "spouse": ("spouse", "husband", "wife"),
        "partner": ("boyfriend", "girlfriend", "fiance", "fiancé", "fiancée"),
        "weight": ("weight",),
        "height": ("height",),
        "age": ("age",),
        "birthday": ("birthday", "birth date", "date of birth"),
        "currency": ("currency",),
        "plan": ("plan", "tier", "subscription"),
        "room": ("room", "meeting room", "venue", "seat", "gate", "desk"),
        "color": ("color", "colour"),
        "slogan": ("slogan", "tagline", "motto"),
        "diet": ("diet",),
        "hours": ("hours", "opening hours", "office hours", "business hours"),
        "cadence": ("cadence", "schedule"),
    },
    kinds={
        "drink": "tea coffee espresso latte cappuccino matcha water juice beer wine cola decaf",
        "editor": (
            "vim neovim nvim emacs vscode code helix zed sublime cursor intellij pycharm nano atom webstorm goland"
        ),
        "package manager": "npm yarn pnpm bun pip poetry uv pipenv conda cargo rye pdm hatch",
        "database": (
            "postgres postgresql mysql mariadb sqlite mongodb mongo cockroachdb oracle dynamodb duckdb clickhouse"
            " tidb cassandra"
        ),
        "cache": "redis valkey memcached dragonfly keydb",
        "queue": "rabbitmq kafka sqs nats pulsar redpanda celery sidekiq",
        "host": "heroku fly.io fly render vercel netlify aws gcp azure railway hetzner digitalocean cloudflare linode",
        "language": "python java javascript typescript rust go golang ruby kotlin swift php elixir scala c++ c# zig",
        "frontend": "react vue svelte angular solid preact htmx ember",
        "web framework": "django flask fastapi rails express nestjs spring laravel starlette litestar",
        "chat": "slack teams discord telegram whatsapp signal mattermost",
        "video": "zoom meet webex google-meet",
        "channel": "email phone call calls text sms chat letter",
        "browser": "chrome firefox safari edge brave arc vivaldi opera",
        "os": "windows linux macos mac ubuntu debian fedora arch nixos",
        "shell": "bash zsh fish nushell powershell",
        "tracker": "jira linear asana trello github-issues monday notion clickup shortcut youtrack tapd",
        "notes": "notion obsidian evernote roam logseq onenote bear",
        "forge": "github gitlab bitbucket gitea codeberg gitee forgejo",
        "ci": "jenkins circleci travis github-actions buildkite drone teamcity",
        "indent": "tabs spaces tab space",
        "seat": "aisle window",
        "theme": "dark light",
        "daytime": "mornings morning afternoons afternoon evenings evening nights night",
        "units": "metric imperial celsius fahrenheit",
        "transport": "car bike bus train subway tram metro plane bicycle",
        "payment": "visa mastercard paypal cash amex",
        "bundler": "webpack vite rollup esbuild parcel turbopack rspack",
        "formatter": "black ruff prettier biome yapf autopep8 gofmt",
        "linter": "flake8 pylint eslint tslint oxlint",
        "tests": "jest vitest mocha pytest unittest nose karma cypress playwright selenium",
        "cloud ai": "openai anthropic gemini claude gpt-4 gpt-4o mistral llama qwen deepseek chatgpt",
        "search": "elasticsearch opensearch solr meilisearch typesense",
        "design": "figma sketch xd penpot photoshop",
        "analytics": "mixpanel amplitude posthog plausible matomo",
        "proxy": "nginx caddy traefik haproxy apache envoy",
        "monitoring": "datadog grafana newrelic sentry prometheus honeycomb zabbix",
        "containers": "docker podman kubernetes nomad swarm",
        "phone": "iphone android pixel samsung galaxy",
        "bank": "revolut wise n26 monzo chase",
        "diet": "vegan vegetarian pescatarian keto paleo omnivore",
        "music": "spotify tidal deezer",
        "password manager": "1password bitwarden lastpass keepass dashlane",
    },
    one_at_a_time={
        "relationship": "single married engaged divorced widowed separated",
        "employment": "employed unemployed retired",
        "switch": "on off",
        "visibility": "public private internal",
        "payment": "paid unpaid overdue refunded",
        "level": "low medium high critical",
        "health": "sick ill healthy recovered",
        "color": "red green blue yellow black white grey gray orange purple pink brown beige",
    },
    stop_words=frozenset(
        (
            "a an and are as at current currently for her his in is its latest new now of on our that the their t"
            "his to today us we your"
        ).split()
    ),
    pronouns={
        **dict.fromkeys(("we", "us", "our team", "the team", "the company", "team", "everyone"), "@we"),
        **dict.fromkeys(("he", "him"), "@he"),
        **dict.fromkeys(("she", "her"), "@she"),
        **dict.fromkeys(("they", "them"), "@they"),
        **dict.fromkeys(("it", "this", "that"), "@it"),
    },
    of="of|for|on|at|in",
    one_of=frozenset("default favorite favourite main preferred primary".split()),
    classes=frozenset("app application module plan product project repo repository service system team tool".split()),
    issues=frozenset("bug issue story task ticket".split()),
    money=frozenset("cent cents dollar dollars eur euro euros gbp pence pounds rmb usd yuan".split()),
    no_values=frozenset(
        "her here him it me n/a na no none null ok okay open? same same-as-before tba tbc tbd that the-same "
        "them there this true-ish unclear undecided unknown us yes you".split()
    ),
    generic=frozenset(
        "about agenda basics call calls change changelog changes config configuration context conversation "
        "daily decision decisions detail details fact facts friday general history important info "
        "information interview interviews journal key learned log logs meeting meetings memories memory misc "
        "monday note notes observations overview personal preference preferences profile project projects "
        "reference references retro retrospective review saturday session setting settings setup stand "
        "standup status summary sunday sync tasks things thursday today todo todos tuesday up update updates "
        "user wednesday weekly work yesterday".split()
    ),
    grammar=frozenset(
        "am and are as at be by do does for from has have he her his i in is it its me must my not of on or "
        "our she that their these they this those to us was we were will with you your".split()
    ),
    names=frozenset("name title id".split()),
    first_person={
        "your": "my",
        "you are": "I am",
        "you're": "I am",
        "you’re": "I am",
        "the user is": "I am",
        "you": "I",
        "the user": "I",
    },
    several=frozenset(
        "friend colleague cousin brother sister child son daughter kid neighbor neighbour pet cat"
        " dog hobby goal idea problem teammate guest speaker winner member client customer one"
        " example answer reason question point way other rest best first second third issue bug"
        " task note language skill allergy".split()
    ),
    described=r"^I\b|^\w+(?:ish|ese|ian|ean|ench|erman|utch|wiss|atholic|uslim|hristian|ewish)\b",
    tickets="pr|issue|ticket|bug|task|mr|story",
    owners={"his": "@he", "her": "@she", "their": "@they", "its": "@it", "your": "@you"},
    indefinite="(?:now )?an? ",
    favourites=frozenset({"favorite", "favourite", "preferred", "usual"}),
    articles="the|our|my",
)

_LONG_STATES = (
    "in progress", "in review", "in beta", "in alpha", "generally available", "in development", "in testing",
    "in production", "in staging", "on hold", "up and running", "work in progress", "wip",
    "code complete", "not started", "rolled back", "shut down", "signed off", "switched off", "turned off", "turned on",
)  # fmt: skip
_STATES = (
    "open opened merged closed done blocked unblocked deployed live paused cancelled canceled shipped finished resolved"
    " fixed pending active inactive deprecated online offline archived released launched completed complete abandoned"
    " reopened stalled delayed postponed enabled disabled retired draft drafted submitted published sold planned"
    " resumed restarted suspended frozen reinstated"
)
STATE = "|".join(sorted([*_LONG_STATES, *_STATES.split()], key=len, reverse=True))

# Roles whose holder changes, and verbs of English clauses with their attributes.
TITLES = (
    "owner|maintainer|lead|leader|manager|ceo|cto|cfo|coo|head|director|assignee|captain|president"
    "|chair|boss|contact|supervisor|dri|on-call"
)
ROLE_OF = {"owns": "owner", "owned": "owner", "maintains": "maintainer", "maintained": "maintainer", "leads": "lead",
            "led": "lead",            "manages": "manager", "managed": "manager", "leader": "lead", "boss": "manager",
            "supervisor": "manager"}  # fmt: skip
NO_EMPLOYER = frozenset("night home scale once nights hours me us you".split())

# Words of jobs.
JOBS = (
    "engineer|manager|lead|director|designer|developer|analyst|architect|officer|cto|ceo|cfo|vp|president"
    "|intern|consultant"
    "|teacher|professor|nurse|doctor|principal|scientist"
    "|librarian|lawyer|driver|writer|baker|cook|chef|pilot|waiter|cashier|barista|accountant|student|farmer|plumber"
    "|electrician|carpenter|painter|researcher|programmer|freelancer|assistant|clerk|translator|editor|therapist|pharmacist"
)

# What a thing is like, which tells no value of an attribute: "the database is slow".
DESCRIPTIONS = frozenset(
    "slow fast big small large huge tiny new old good bad great nice fine down up broken full empty late "
    "early ready busy loud quiet hot cold warm happy sad angry tired funny tall short long kind nervous "
    "proud strict friendly sick ill healthy asleep awake alone important useful useless wrong right "
    "missing gone safe dangerous expensive cheap clean dirty easy hard difficult simple complex stable "
    "unstable flaky here there away home out back".split()
)
