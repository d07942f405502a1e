"""Every suite, in the order in which they run. Versions are pinned, so that tests are the same everywhere."""

from __future__ import annotations

from suites.suite import Files, Repository, Sdist, Suite

CONTAINERLESS = {"SUITES_HOST": "{host}", "SUITES_PORT": "{port}"}
PY_AMQP = {"RABBITMQ_HOST": "{host}", "RABBITMQ_5672_TCP": "{port}"}

SUITES = (
    Suite(
        "pika",
        "1.4.4",
        "pytest",
        Repository("pika/pika", "1.4.4"),
        install=("pytest>=8.4,<10", "gevent", "tornado", "twisted"),
        arguments=("tests/acceptance",),
        seconds=600,
        default_port=True,
    ),
    Suite(
        "aiormq",
        "6.9.3",
        "pytest",
        Repository("mosquito/aiormq", "6.9.3"),
        install=("pytest>=8.4,<9", "aiomisc-pytest>=1.1,<2", "aiomisc<18"),
        arguments=("tests", "-k", "not amqps"),
        environment=CONTAINERLESS,
        seconds=600,
        replaced={"tests/docker_client.py": "docker_client.py"},
    ),
    Suite(
        "aio-pika",
        "9.6.0",
        "pytest",
        Repository("mosquito/aio-pika", "9.6.0"),
        install=("pytest>=8.4,<9", "aiomisc-pytest>=2,<3", "aiomisc>=18,<19", "shortuuid", "timeout-decorator"),
        # The plug-in gives more time to tests that keep the client busy for most of theirs, at any broker. A run that
        # is ended leaves no report, since aiomisc's loop does not listen to interrupts.
        arguments=("--timeout", "180", "-p", "patient", "tests"),
        environment=CONTAINERLESS,
        seconds=3600,
        replaced={"tests/docker_client.py": "docker_client.py", "patient.py": "patient.py"},
    ),
    Suite(
        "amqp",
        "5.4.2",
        "pytest",
        Sdist("amqp"),
        install=("pytest>=8.4,<10",),
        arguments=("t/integration",),
        environment=PY_AMQP,
    ),
    Suite(
        "kombu",
        "5.7.0",
        "pytest",
        Sdist("kombu"),
        install=("pytest>=8.4,<10",),
        arguments=("t/integration/test_py_amqp.py",),
        environment=PY_AMQP,
    ),
    Suite(
        "celery",
        "5.7.0",
        "pytest",
        Sdist("celery"),
        install=(
            "pytest>=8.4,<10",
            "pytest-subtests",
            "pytest-order",
            "pydantic>=2.11",
            "redis",
            "sqlalchemy",
        ),
        # The others want Redis, memcached, Django or a cloud.
        arguments=(
            "-p",
            "celery.contrib.pytest",
            "t/integration/test_tasks.py",
            "t/integration/test_inspect.py",
            "t/integration/test_worker.py",
            "t/integration/test_connection_recovery.py",
            "t/integration/test_group_chains.py",
            "t/integration/test_canvas.py",
        ),
        environment={"TEST_BROKER": "{url}", "TEST_BACKEND": "rpc://"},
        seconds=1200,
    ),
    Suite(
        "amqplib",
        "2.0.1",
        "node",
        Repository("amqp-node/amqplib", "v2.0.1"),
        install=("claire@0.4.1",),
        arguments=("--test-timeout=120000",),
        environment={"URL": "{url}"},
    ),
    Suite(
        "bunny",
        "2.19.0",
        "rspec",
        Repository("ruby-amqp/bunny", "2.19.0"),
        install=("ruby-bunny",),
        # The others want RabbitMQ's management plug-in, Toxiproxy or TLS.
        arguments=(
            "--pattern",
            "spec/{higher_level_api,lower_level_api,issues}/**/*_spec.rb",
            "--exclude-pattern",
            "**/{connection_recovery,connection_stop,toxiproxy,tls_connection}_spec.rb",
        ),
        environment={"RABBITMQ_PORT": "{port}"},
        seconds=900,
        default_port=True,
        replaced={"Gemfile": "Gemfile"},
        virtual_hosts=("bunny_testbed",),
        users={"bunny_gem": "bunny_password", "bunny_reader": "reader_password"},
    ),
    Suite(
        "php-amqplib",
        "3.5.3",
        "phpunit",
        Repository("php-amqplib/php-amqplib", "v3.5.3"),
        install=("php-amqplib", "php-curl"),
        arguments=("--bootstrap", "tests/bootstrap.php", "tests/Functional"),
        environment={"TEST_RABBITMQ_HOST": "{host}", "TEST_RABBITMQ_PORT": "{port}"},
        replaced={"vendor/autoload.php": "autoload.php"},
    ),
    Suite(
        "amqp091-go",
        "1.5.0",
        "go",
        Files(
            "/usr/share/gocode/src/github.com/rabbitmq/amqp091-go",
            "golang-github-rabbitmq-amqp091-go-dev",
        ),
        arguments=("-tags", "integration", "."),
        environment={"AMQP_URL": "{url}"},
        seconds=600,
    ),
)
