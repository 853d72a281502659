/** From SVG to PNG. The renderer and the typeface come inside npm packages: nothing is built or downloaded. */
import { createRequire } from 'node:module';

const locate = createRequire(import.meta.url);
const faces = ['dejavu-fonts-ttf/ttf/DejaVuSans.ttf', 'dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'];

/**
 * Paints off the main thread. Rejects where the renderer has no build for this machine: a picture is never needed, so it is
 * loaded when the first one is painted and not before.
 */
export async function paintPng(svg: string): Promise<Buffer> {
  const { renderAsync } = await import('@resvg/resvg-js');
  const image = await renderAsync(svg, {
    font: {
      fontFiles: faces.map((face) => locate.resolve(face)),
      loadSystemFonts: false,
      defaultFontFamily: 'DejaVu Sans',
    },
  });
  return image.asPng();
}
