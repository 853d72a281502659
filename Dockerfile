# Small and unprivileged: nothing to compile, so the first stage only fetches the packages of the lock file.
ARG NODE=22
FROM node:${NODE}-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund && npm cache clean --force

FROM node:${NODE}-slim
ENV NODE_ENV=production HTTP_HOST=0.0.0.0 RECLAIM_DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json LICENSE README.md manifest.yaml reclaim.example.yaml .env.example ./
COPY bin bin
COPY host host
COPY jobs jobs
COPY src src
RUN install -d -o node -g node /data && ln -s /app/bin/reclaim.mjs /usr/local/bin/reclaim
USER node
WORKDIR /config
VOLUME /data
EXPOSE 8090
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.HTTP_PORT || 8090) + '/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# The bot itself is the first process and hears TERM and HUP; --init in docker or compose reaps what it starts.
ENTRYPOINT ["node", "/app/bin/reclaim.mjs"]
CMD ["serve"]
