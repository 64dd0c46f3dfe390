# check=skip=RedundantTargetPlatform
# Both may be pinned by digest: docs/deployment.md shows how.
ARG BUILD_IMAGE=docker.io/library/node:24-bookworm-slim
ARG RUN_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot

# What is copied out of here is JavaScript alone, the same for every platform.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc rolldown.config.mjs ./
# Where packages come from a registry of one's own: its .npmrc and its authority may be given as secrets.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca \
  [ ! -e /run/secrets/ca ] || export NODE_EXTRA_CA_CERTS=/run/secrets/ca; \
  npm ci --ignore-scripts --no-fund --no-audit
COPY src src
COPY docs/runbooks docs/runbooks
COPY packaging/render-runbooks.mjs packaging/
# The program holds OpenTelemetry. Only its names, versions and licences are kept, for scanners.
RUN npm run bundle && npm prune --omit=dev --ignore-scripts --no-fund --no-audit \
  && find node_modules/@opentelemetry -type f -not -name package.json -not -name LICENSE -delete \
  && find node_modules/@opentelemetry -type d -empty -delete
# So that it can be called by its name, where there is neither a shell nor env.
RUN sed -i '1s|.*|#!/nodejs/bin/node|' build/program/main.js && chmod 755 build/program/main.js \
  && mkdir bin && ln -s ../dist/program/main.js bin/scanfeed

# An older podman takes the platform of the stage before where none is named.
FROM --platform=$TARGETPLATFORM ${RUN_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="scanfeed" \
      org.opencontainers.image.description="Keeps a PostgreSQL database in step with the delivery feed of a Document Recognition Service" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
# glibc keeps up to 64 MiB of freed memory unless this threshold is fixed; with 1 MiB the buffers of an ordinary page are reused.
# NODE_OPTIONS are for commands that are called by name. Others may replace them, as the operator of OpenTelemetry does, so the
# entry point repeats them.
ENV NODE_ENV=production \
    MALLOC_MMAP_THRESHOLD_=1048576 \
    NODE_OPTIONS="--max-old-space-size-percentage=50 --max-semi-space-size=4" \
    PATH=/app/bin:/nodejs/bin
COPY LICENSE package.json ./
COPY migrations migrations
COPY openapi openapi
# The program holds what it needs of them; they are here for scanners, and for their licences (docs/decisions/0011).
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/build/program dist/program
COPY --from=build /app/dist/runbooks dist/runbooks
COPY --from=build /app/bin bin
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 9847
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "--eval", "const port = process.env.SCANFEED_ADMIN_PORT || 9847; http.get({ port, path: '/livez', agent: false }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# By default the heap may grow beyond a small container's limit; the other half is for what is held outside of it. A young
# generation is sized by the machine's memory, and would be 16 MiB of a daemon that only passes pages on. The daemon collects
# what it gave back, and a small limit must not mean to collect all the time (docs/decisions/0009).
ENTRYPOINT ["node", "--max-old-space-size-percentage=50", "--max-semi-space-size=4", "--expose-gc", "--heap-growing-percent=70", "--no-concurrent-array-buffer-sweeping", "/app/dist/program/main.js"]
CMD ["run"]
