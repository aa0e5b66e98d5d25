# docker build -t delay-queue .
# docker run -p 127.0.0.1:9277:9277 -v delay-queue:/data --read-only delay-queue
#
# Without further settings the container runs its own embedded store in /data. For a Redis or Valkey of
# yours set DELAYQUEUE_REDIS_HOST=HOST:PORT (docker-compose.yml does). Every setting can be given as a
# DELAYQUEUE_* variable; those below win over a file named with `-c FILE`.

FROM python:3.14-slim-trixie@sha256:e11c17f46f87983eb946b121694dedba6290ee2b0dd5294d137d82943502d179 AS build
WORKDIR /src
# another index for pip: --build-arg PIP_INDEX_URL=https://...
ARG PIP_INDEX_URL
RUN ["python", "-m", "venv", "/opt/delay-queue"]
# the very files that were tried, by their hashes; `make lock` chooses new ones
COPY deploy/requirements.txt ./
RUN ["/opt/delay-queue/bin/pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:", "-r", "requirements.txt"]
COPY pyproject.toml README.md LICENSE ./
COPY delayqueue delayqueue
RUN ["/opt/delay-queue/bin/pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "."]
# not needed at run time
RUN ["/opt/delay-queue/bin/pip", "uninstall", "--yes", "pip", "setuptools"]

FROM python:3.14-slim-trixie@sha256:e11c17f46f87983eb946b121694dedba6290ee2b0dd5294d137d82943502d179
LABEL org.opencontainers.image.title="delay-queue" \
      org.opencontainers.image.description="A delay queue server that speaks HTTP and keeps its jobs in Redis or Valkey" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.1.0"
COPY --from=build /opt/delay-queue /opt/delay-queue
# a number, so that an orchestrator sees that it is not root; a volume inherits the owner of /data
RUN ["install", "--directory", "--owner=10001", "--group=10001", "--mode=700", "/data"]
USER 10001:10001
VOLUME /data
WORKDIR /data
# PATH is for `docker exec delay-queue delay-queue check`; the container's network is the wall that protected mode
# stands for outside of one
ENV PATH="/opt/delay-queue/bin:${PATH}" \
    DELAYQUEUE_PROTECTED_MODE=no \
    DELAYQUEUE_DATA_DIR=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
EXPOSE 9277
# a large embedded store is loaded first, which may take minutes; once it serves, it counts as healthy at once
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m --retries=3 \
    CMD ["/opt/delay-queue/bin/delay-queue", "healthy"]
# where the code of this very image can be read; `make image` tells
ARG SOURCE=""
ARG REVISION=""
# told by --version, the log and /stats
ENV DELAYQUEUE_REVISION="${REVISION}"
LABEL org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.revision="${REVISION}"
ENTRYPOINT ["/opt/delay-queue/bin/delay-queue"]
