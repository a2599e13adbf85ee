# The image of the webhook, from a checkout: docker build --tag registry.example.com/kubetailor .
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY workloads workloads
COPY registry registry
COPY transformers transformers
COPY plugins plugins
RUN pip install --no-cache-dir --constraint constraints.txt hatchling
RUN pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /dist .
# What hatchling brought is there already, and yet belongs into /install too.
RUN pip install --no-cache-dir --constraint constraints.txt --ignore-installed --prefix /install \
      "$(echo /dist/*.whl)[webhook]"

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="kubetailor" \
      org.opencontainers.image.description="Cuts every pod and job that a pipeline launches to your cluster." \
      org.opencontainers.image.licenses="Apache-2.0"
# Not a virtual environment: an image that is built upon this one adds plugins by a plain `pip install`.
COPY --from=build /install /usr/local
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# As in the Deployment, which can tell that it is not root by a number alone.
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["kubetailor"]
CMD ["webhook", "serve"]
