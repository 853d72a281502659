/**
 * Traces of jobs by OpenTelemetry: a span where a job is put up and one where it runs, of one trace, whichever processes those
 * are. Loaded and sent only where OTEL_EXPORTER_OTLP_ENDPOINT names a collector; the standard OTEL_* variables hold beside it.
 */
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { BullMQOtel } from 'bullmq-otel';
import type { Telemetry } from 'bullmq';

export interface Tracing {
  readonly telemetry: Telemetry;
  /** Sends what is left, for a few seconds at most. Never rejects: a collector that is away is no reason to stay. */
  close(): Promise<void>;
}

const lastSendMs = 3_000;

export function startTracing(endpoint: string, who: { instance: string; release: string }): Tracing {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'reclaim',
      'service.version': who.release,
      'service.instance.id': who.instance,
    }),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url, timeoutMillis: lastSendMs }))],
  });
  provider.register();
  return {
    telemetry: new BullMQOtel({ tracerName: 'reclaim', version: who.release }),
    close: async () => {
      await provider.shutdown().catch(() => undefined);
      trace.disable();
    },
  };
}
