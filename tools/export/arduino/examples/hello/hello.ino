/* Runs the network on zeros and prints the beginning of its first output. */
#include <${name}.h>

${statics_cpp}
void setup() {
  Serial.begin(115200);
${reset}}

void loop() {
  int status = ${call};
  if (status) {
    Serial.println(${name}_why(status));
  } else {
    for (int i = 0; i < 10 && i < ${NAME}_OUTPUT0_ELEMENTS; i++) Serial.println((double)out0[i]);
  }
  delay(1000);
}
