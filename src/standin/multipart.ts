/** The bytes of the one file in a multipart upload. */
export function multipartFile(contentType: string, body: Buffer): Buffer {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (boundary === undefined) throw new Error('multipart without a boundary');
  const start = body.indexOf('\r\n\r\n');
  const end = body.indexOf(`\r\n--${boundary}`, start);
  if (start < 0 || end < 0) throw new Error('multipart without a part');
  return body.subarray(start + 4, end);
}
